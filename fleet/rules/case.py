"""What a rule gets to look at: one manifest with its facts, its catalogue and what follows from them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from packaging.version import Version

from fleet.codepath import Exposure
from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import AnyManifest, Manifest, PinnedManifest
from fleet.matching import Match
from fleet.pins import newest_acceptable
from fleet.rules.exceptions import judged_triage
from fleet.spec import EngineChoice, EngineName
from fleet.versions import parse_version
from fleet.violation import Enforcement, Violation
from fleet.waiver import Triage, Waiver


class WaivedBy(StrEnum):
    """What a waiver of a rule's violations must name."""

    RULE = "rule"
    ADVISORY = "advisory"
    NOTHING = "nothing"
    """No waiver holds: the manifest, the policy or the facts have to change."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that every manifest is judged by."""

    id: str
    severity: Enforcement
    """The severity of its violations unless policy, facts or a person's word make it milder."""
    title: str
    """What holds when nothing is wrong."""
    check: Callable[["Case"], Iterable[Violation]]
    waived_by: WaivedBy = WaivedBy.NOTHING
    judges_canary: bool = False
    """Whether a canary's engine is judged by it too, besides the manifest's own."""


@dataclass(frozen=True, slots=True)
class Release:
    """The engine version that a manifest names, as the rules need it."""

    engine: EngineName
    raw: str
    """The version as the manifest spells it."""
    version: Version | None
    """``None`` when the spelling is not a version."""
    package: str
    title: str = field(init=False)
    """Engine and version as people read them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", f"{self.engine} {self.raw}")

    def __str__(self) -> str:
        return self.title

    def is_among(self, versions: Sequence[str]) -> bool:
        """Whether the version is listed under any of its spellings; an empty list means every version."""
        if not versions or self.raw in versions:
            return True
        return self.version is not None and self.version in map(parse_version, versions)


@dataclass(frozen=True)
class Case:
    """One manifest to be judged. What is derived is computed once, when a rule asks."""

    manifest: AnyManifest
    facts: Facts
    catalogue: EngineCatalogue
    written: Manifest | None = None
    """The manifest that the pinned one was made from, where the caller has both."""
    rules: Mapping[str, Rule] = field(default_factory=dict)
    """Every rule by its id, for those that judge waivers."""
    is_canary: bool = False

    @property
    def engine(self) -> EngineChoice | None:
        """The engine as the manifest has it; ``None`` for a hosted one and where it is left open."""
        return self.manifest.spec.engine

    @property
    def offered(self) -> EngineName | None:
        """The engine's name where the catalogue knows it."""
        name = self.engine.name if self.engine else None
        return name if name in self.catalogue.names else None

    @cached_property
    def release(self) -> Release | None:
        """Engine and version; ``None`` while one is open or the catalogue does not know the engine."""
        raw = self.engine.version if self.engine else None
        if self.offered is None or raw is None:
            return None
        return Release(self.offered, raw, parse_version(raw), self.catalogue.package(self.offered))

    @property
    def identity(self) -> str | None:
        """The identity that a waiver binds to; ``None`` as long as the manifest is not pinned."""
        return self.manifest.identity if isinstance(self.manifest, PinnedManifest) else None

    @cached_property
    def exposure(self) -> Exposure:
        """The code paths that are switched on; all of them where the version can't be read."""
        release = self.release
        if release is None or release.version is None:
            return Exposure.everything(path for match in self.live for path in match.paths)
        return self.catalogue.exposure(self.manifest, release.engine, release.raw)

    @cached_property
    def live(self) -> tuple[Match, ...]:
        """Every match that is not ``not_affected``, worst first."""
        if self.release is None:
            return ()
        return self.facts.data.live_matches(self.release.package, self.release.raw)

    @cached_property
    def exposed(self) -> tuple[Match, ...]:
        """The live matches that can be reached; malware always can."""
        return tuple(item for item in self.live if item.advisory.is_malware or self.exposure.reaches(item.paths))

    @cached_property
    def acceptable_version(self) -> str | None:
        """The newest published version of the engine that no record refuses on the exposed paths."""
        if self.release is None:
            return None
        return newest_acceptable(self.facts.data, self.release.package, self.facts.policy, paths=self.exposure.paths)

    @cached_property
    def waivers(self) -> tuple[Waiver, ...]:
        """Every waiver of the manifest's identity, by name."""
        if not self.facts.waivers or self.identity is None:
            return ()
        return self.facts.waivers_for(self.identity)

    @cached_property
    def triage(self) -> tuple[tuple[Triage, tuple[str, ...]], ...]:
        """Every triage entry for the engine's package and version, by name, with what keeps it from holding."""
        release = self.release
        if release is None or not self.facts.triage:
            return ()
        return tuple(item for item in judged_triage(self.facts, release.package) if release.is_among(item[0].versions))

    @cached_property
    def triaged(self) -> Mapping[str, Triage]:
        """The triage entries that count by the advisory's id: the first by name."""
        return {entry.advisory: entry for entry, problems in reversed(self.triage) if not problems}

    @cached_property
    def unreachable(self) -> tuple[Match, ...]:
        """The live matches whose confirmed code paths are all switched off."""
        reached = set(map(id, self.exposed))
        return tuple(item for item in self.live if id(item) not in reached)
