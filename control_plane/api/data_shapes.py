"""The shapes of what is read from the facts: advisories, pins, engines."""

from typing import Literal

from control_plane.api.shapes import ApiVersion
from fleet.advisory import Record
from fleet.value import Value


class AdvisorySpec(Value):
    """What the sources say."""

    aliases: tuple[str, ...]
    severity: str | None
    packages: tuple[str, ...]
    paths: dict[str, tuple[str, ...]]
    """Package -> confirmed code paths; a package that is not named has no label: every path counts."""
    isMalware: bool
    isWithdrawn: bool
    incompleteFixOf: tuple[str, ...]
    records: tuple[Record, ...]


class NameMeta(Value):
    """The name of something that is read from data, not stored."""

    name: str


class Advisory(Value):
    """A merged advisory."""

    apiVersion: ApiVersion
    kind: Literal["Advisory"]
    metadata: NameMeta
    spec: AdvisorySpec


class PathLimit(Value):
    """The limit of one code path: a floor, or closed with its reason."""

    path: str
    floor: str | None
    closed: str | None
    decidedBy: tuple[str, ...]


class EnginePinsStatus(Value):
    """What the facts make of an engine."""

    package: str
    paths: tuple[PathLimit, ...]
    recommended: str | None
    reason: str
    factsDigest: str


class EnginePins(Value):
    """The pins of one engine."""

    apiVersion: ApiVersion
    kind: Literal["EnginePins"]
    metadata: NameMeta
    status: EnginePinsStatus


class EngineSpec(Value):
    """What the catalogue says."""

    hosted: bool
    package: str | None


class EngineStatus(Value):
    """What can be run of it."""

    offered: bool
    refusal: str | None
    versions: tuple[str, ...]
    recommended: str | None


class Engine(Value):
    """One engine."""

    apiVersion: ApiVersion
    kind: Literal["Engine"]
    metadata: NameMeta
    spec: EngineSpec
    status: EngineStatus
