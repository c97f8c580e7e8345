"""What the program reads beside its configuration: the environment's folder, judged by the facts of the day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from engines.catalogue import load
from fleet.engine import EngineCatalogue
from fleet.manifest import NO_MANIFESTS
from infra.manifest_review import Judged, judged
from infra.problem import Problem, StackRefused
from infra.stack_config import StackConfig
from sources import environment as environment_files
from sources import facts, policy_file
from sources.environment import Environment
from sources.errors import SourceError

NOTHING = Judged((), (), ())


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the program knows beside its configuration."""

    environment: Environment
    """Of ``environments/<env>``; empty where there is no such folder."""
    judged: Judged
    catalogue: EngineCatalogue | None
    """``None`` = there are no manifests, and nobody asks it."""


def read_inputs(config: StackConfig, *, environments: Path, data_dirs: Sequence[Path], today: date) -> Inputs:
    """What the environment's folder says.

    Raises:
        StackRefused: a file that can't be read, an environment of which the policy says nothing. Refused manifests are
            in ``judged``.
    """
    _check_environment(config.environment, environments.parent)
    folder = environments / config.environment
    try:
        environment = environment_files.read(folder)
        if not _has_manifests(folder):
            return Inputs(environment, NOTHING, None)
        catalogue = load()
        known = facts.load(
            config.environment,
            today=today,
            data_dirs=data_dirs,
            environments_dir=environments,
            policy=policy_file.locate(working_tree=environments.parent),
            catalogue_digest=catalogue.digest,
        )
        return Inputs(environment, judged(folder, known, catalogue, environment.adopted), catalogue)
    except SourceError as error:
        remedy = f"correct it; environments/{config.environment} may also be absent"
        raise StackRefused([Problem("environment", config.environment, str(error), remedy)]) from None


def other_environments(checkout: Path, own: str) -> frozenset[str]:
    """Every other environment that has a stack's file or a folder."""
    files = (path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in checkout.glob("Pulumi.?*.yaml"))
    folders = (path.name for path in (checkout / "environments").glob("*/"))
    return frozenset({*files, *folders} - {own})


def _check_environment(name: str, checkout: Path) -> None:
    """The policy pack asks the same, and would end the preview without the other messages."""
    try:
        unknown = policy_file.unknown_environment(policy_file.read(working_tree=checkout), name)
    except SourceError as error:
        raise StackRefused([Problem("environment", name, str(error), "correct the policy")]) from None
    if unknown is not None:
        raise StackRefused([Problem("environment", name, unknown, f"correct it, or {policy_file.how_to_add(name)}")])


def _has_manifests(folder: Path) -> bool:
    return any(path.stem not in NO_MANIFESTS for path in folder.glob("*.y*ml"))
