"""What the rules need to know about engines: the Protocol that the catalogue implements."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fleet.codepath import Exposure
from fleet.manifest import AnyManifest, PinnedManifest
from fleet.spec import EngineName, HostedName


@dataclass(frozen=True, slots=True)
class CommandLine:
    """How an engine is started: arguments, environment, and files that must lie beside it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[str, str]
    """File name -> text, for engines that take settings from a file; ``argv`` names them by this name."""


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """A flag that the version lacks or whose value it does not take."""

    flag: str
    message: str
    """What is wrong and which version has it."""


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A feature, quantisation or parallelism that the engine or version can't do."""

    pointer: str
    """JSON pointer into the manifest."""
    message: str


@dataclass(frozen=True, slots=True)
class Preference:
    """How well an engine suits a workload: 0..1, with the reason from data."""

    score: float
    reason: str


class EngineCatalogue(Protocol):
    """What each engine can do, per version. Implemented by ``engines.catalogue``."""

    @property
    def digest(self) -> str:
        """The digest of the catalogue's data."""
        ...

    @property
    def names(self) -> tuple[EngineName, ...]:
        """The engines that it knows."""
        ...

    @property
    def hosted_names(self) -> tuple[HostedName, ...]:
        """The hosted engines that it knows."""
        ...

    def package(self, name: EngineName) -> str:
        """The normalised package name under which advisories are filed."""
        ...

    def refusal(self, name: EngineName) -> str | None:
        """Why an engine is not offered (not maintained, not open), or ``None``."""
        ...

    def exposure(self, manifest: AnyManifest, name: EngineName, version: str) -> Exposure:
        """The code paths that model, flags and features switch on."""
        ...

    def flag_problems(self, manifest: AnyManifest, name: EngineName, version: str) -> tuple[FlagProblem, ...]:
        """Flags of the manifest that the version does not take."""
        ...

    def unsupported(self, manifest: AnyManifest, name: EngineName, version: str) -> tuple[Unsupported, ...]:
        """What the manifest asks and the version can't do."""
        ...

    def preference(self, manifest: AnyManifest, name: EngineName) -> Preference:
        """How well the engine suits the workload."""
        ...

    def command_line(self, manifest: PinnedManifest, *, host: str, port: int) -> CommandLine:
        """How the pinned engine is started; settings whose default moved between versions are written out."""
        ...
