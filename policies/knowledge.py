"""What the pack knows beside the resources: the stack's configuration, the environment's files, the facts of the day.

Manifests alone ask for facts and catalogue, so they are read when the first one is seen.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from engines.catalogue import load
from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.node_pools import NodePool
from fleet.policy import PlatformPolicy
from sources import environment as environment_files
from sources import facts as facts_files
from sources import policy_file
from sources.environment import Environment


class NoEnvironment(LookupError):
    """The stack is of no environment that the policy names; a mistyped name must not get milder rules."""


@dataclass(frozen=True, eq=False)
class Files:
    """Where the pack reads what manifests are judged by."""

    environment: str
    policy: Path
    environments: Path
    data: tuple[Path, ...]
    """Folders of advisories; none = the bundled ones."""
    today: Callable[[], date]

    @cached_property
    def catalogue(self) -> EngineCatalogue:
        """The engines."""
        return load()

    @cached_property
    def written(self) -> Environment:
        """What people wrote down for the environment."""
        return environment_files.read(self.environments / self.environment)

    @cached_property
    def facts(self) -> Facts:
        """The facts of the day."""
        return facts_files.load(
            self.environment,
            today=self.today(),
            data_dirs=self.data,
            environments_dir=self.environments,
            policy=self.policy,
            catalogue_digest=self.catalogue.digest,
        )


@dataclass(frozen=True, eq=False)
class StackFacts:
    """What the stack's configuration says."""

    environment: str
    pools: tuple[NodePool, ...] = ()
    reservation_zones: Mapping[str, str] = field(default_factory=dict)
    """Reservation -> its zone."""
    drivers: Mapping[str, str] = field(default_factory=dict)
    """Pool -> the NVIDIA driver of its nodes, where it is known."""
    is_node_local: bool = False
    """Pods read weights out of the bucket; there is no file system."""
    copy_image: str | None = None
    """What copies them for engines that can't stream."""
    data: tuple[str, ...] = ()
    """Folders of advisories, from the checkout."""


@dataclass(frozen=True, eq=False)
class Ground:
    """All of it, for one environment."""

    environment: str
    platform: PlatformPolicy
    stack: StackFacts
    files: Files


def ground_of(environ: Mapping[str, str], *, root: Path, policy: Path, today: Callable[[], date]) -> Ground:
    """What the pack knows about the stack that the engine tells it of; ``root`` is the checkout.

    Raises:
        SourceError: the policy can't be read.
        NoEnvironment: the stack's environment is none that the policy names.
    """
    book = policy_file.read(policy)
    stack = stack_facts(environ, tuple(book.environments))
    data = tuple(root / folder for folder in stack.data)
    files = Files(stack.environment, policy, root / "environments", data, today)
    return Ground(stack.environment, book.platform_for(stack.environment), stack, files)


def stack_facts(environ: Mapping[str, str], known: Sequence[str]) -> StackFacts:
    """What the engine tells the pack about the stack.

    Raises:
        NoEnvironment: the stack's environment is none of the known ones.
    """
    config = _object(environ.get("PULUMI_CONFIG"))
    stack = _object(config.get("enginehouse:stack"))
    name = str(stack.get("environment") or PurePosixPath(environ.get("PULUMI_STACK", "")).name)
    if name not in known:
        raise NoEnvironment(f"the stack's environment is '{name}'; the policy has {', '.join(known)}")
    pools = [pool for pool in stack.get("pools", ()) if isinstance(pool, Mapping)]
    data = json.loads(config.get("enginehouse:data") or "[]")
    weights = stack.get("weights") or {}
    return StackFacts(
        environment=name,
        pools=tuple(found for pool in pools if (found := _pool(pool)) is not None),
        reservation_zones={pool["reservation_id"]: zone for pool in pools if (zone := _reserved_zone(pool))},
        drivers={pool["name"]: pool["image"]["driver"] for pool in pools if (pool.get("image") or {}).get("driver")},
        is_node_local=weights.get("kind") == "node-local",
        copy_image=weights.get("copy_image"),
        data=tuple(str(folder) for folder in data),
    )


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _pool(stated: Mapping[str, Any]) -> NodePool | None:
    """The pool as the fleet knows it; the program refuses a wrong one before the pack is asked."""
    try:
        return NodePool.model_validate({key: stated[key] for key in NodePool.model_fields if key in stated})
    except ValidationError:
        return None


def _reserved_zone(pool: Mapping[str, Any]) -> str | None:
    named = pool.get("zones") or [zone for zone in (pool.get("zone"),) if zone]
    return str(named[0]) if pool.get("reservation_id") and len(named) == 1 else None
