"""What the pack knows beside the resources: the stack's configuration, the environment's files, the facts of the day.

Manifests alone ask for facts and catalogue, so they are read when the first one is seen.
"""

import json
import re
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
from fleet.spec import NAME_PATTERN
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
    stack = stack_facts(environ)
    unknown = policy_file.unknown_environment(book, stack.environment)
    if unknown is not None:
        raise NoEnvironment(f"{unknown}; {policy_file.how_to_add(stack.environment)}, or correct the stack's own")
    data = tuple(root / folder for folder in stack.data)
    files = Files(stack.environment, policy, root / "environments", data, today)
    return Ground(stack.environment, book.platform_for(stack.environment), stack, files)


def stack_facts(environ: Mapping[str, str]) -> StackFacts:
    """What the engine tells the pack about the stack.

    What is no value of its kind is passed over: the program refuses such a stack, with key and remedy.

    Raises:
        NoEnvironment: neither the configuration nor the stack's own name has the name of an environment.
    """
    config = _mapping(_parsed(environ.get("PULUMI_CONFIG")))
    stack = _mapping(_parsed(config.get("enginehouse:stack")))
    pools = [pool for pool in _list(stack.get("pools")) if isinstance(pool, Mapping)]
    weights = _mapping(stack.get("weights"))
    return StackFacts(
        environment=_environment(stack, environ.get("PULUMI_STACK", "")),
        pools=tuple(found for pool in pools if (found := _pool(pool)) is not None),
        reservation_zones=dict(filter(None, map(_reserved_zone, pools))),
        drivers=dict(filter(None, map(_driver, pools))),
        is_node_local=weights.get("kind") == "node-local",
        copy_image=_text(weights.get("copy_image")),
        data=tuple(filter(None, map(_text, _list(_parsed(config.get("enginehouse:data")))))),
    )


def _environment(stack: Mapping[str, Any], stack_name: str) -> str:
    stated = stack.get("environment")
    name = PurePosixPath(stack_name).name if stated is None or stated == "" else stated
    if not isinstance(name, str) or re.fullmatch(NAME_PATTERN, name) is None:
        shown = repr(name)[:60] if isinstance(name, str) else f"a {type(name).__name__}"
        remedy = "give environment in enginehouse:stack the name of one that policies/policy.yaml has"
        raise NoEnvironment(f"the stack's environment is {shown}, which is no name; {remedy}")
    return name


def _parsed(text: object) -> object:
    """What JSON text holds; ``None`` = nothing, or no JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _pool(stated: Mapping[str, Any]) -> NodePool | None:
    """The pool as the fleet knows it; the program refuses a wrong one before the pack is asked."""
    try:
        return NodePool.model_validate({key: stated[key] for key in NodePool.model_fields if key in stated})
    except ValidationError:
        return None


def _reserved_zone(pool: Mapping[str, Any]) -> tuple[str, str] | None:
    """Reservation and zone, where the pool has both and one of each."""
    reservation, zone = _text(pool.get("reservation_id")), _text(pool.get("zone"))
    zones = [text for text in map(_text, _list(pool.get("zones"))) if text] or ([zone] if zone else [])
    return (reservation, zones[0]) if reservation and len(zones) == 1 else None


def _driver(pool: Mapping[str, Any]) -> tuple[str, str] | None:
    """Pool and the driver of its nodes, where it has a name and says one."""
    name, driver = _text(pool.get("name")), _text(_mapping(pool.get("image")).get("driver"))
    return (name, driver) if name and driver else None
