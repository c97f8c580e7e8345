"""Facts: everything a review looks at, as one serialisable bundle with a digest. Nothing is looked up elsewhere."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import date
from functools import cached_property
from typing import Any, TypeVar

from packaging.version import Version
from pydantic import Field

from fleet.advisory import Advisory, normalised_package
from fleet.canonical import digest
from fleet.images import ImageRecord
from fleet.matching import Match, Result, Subject, worst_first
from fleet.node_pools import NodePool
from fleet.policy import Policy
from fleet.prices import PriceTable
from fleet.recall import Recall
from fleet.value import Value
from fleet.versions import PublishedVersions, parse_version
from fleet.waiver import Triage, Waiver

Entry = TypeVar("Entry", Waiver, Triage)
Derived = TypeVar("Derived")


class Quarantined(Value):
    """A record that could not be read: its package is not known to be clean until it is repaired."""

    source: str
    """File name or feed."""
    id: str | None = None
    package: str | None = None
    reason: str


class AdvisoryData(Value):
    """What was read from feeds or a folder: the expensive part of the facts, shared by all environments."""

    advisories: tuple[Advisory, ...] = ()
    published: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Package -> versions on the index, without yanked ones."""
    published_retrieved: str = ""
    """Day on which the index was read."""
    quarantined: tuple[Quarantined, ...] = ()
    unknown_keys_ignored: int = 0
    as_of: str | None = None
    """The newest ``modified`` of all records, ISO 8601; ``None`` when there is none."""
    retrieved: date | None = None
    """The day on which the data was read from its feeds; its age counts from here."""
    source: str = ""
    """Where it came from: ``bundled snapshot``, a folder, a server."""

    @cached_property
    def digest(self) -> str:
        """The digest over the whole data."""
        return digest(self.model_dump(mode="json", exclude_none=True, exclude={"source"}))

    @cached_property
    def _by_package(self) -> Mapping[str, tuple[Advisory, ...]]:
        index: dict[str, list[Advisory]] = {}
        for advisory in self.advisories:
            for package in advisory.packages:
                index.setdefault(package, []).append(advisory)
        return {package: tuple(found) for package, found in index.items()}

    @cached_property
    def _published(self) -> Mapping[str, PublishedVersions]:
        retrieved = self.published_retrieved
        return {package: PublishedVersions.read(raw, retrieved=retrieved) for package, raw in self.published.items()}

    @cached_property
    def _subjects(self) -> Recall[str, tuple[Subject, ...]]:
        return Recall()

    @cached_property
    def _matches(self) -> Recall[tuple[str, str], tuple[Match, ...]]:
        return Recall()

    @cached_property
    def _ids(self) -> Recall[str, frozenset[str]]:
        return Recall()

    @cached_property
    def _live(self) -> Recall[tuple[str, str], tuple[Match, ...]]:
        return Recall()

    def published_versions(self, package: str) -> PublishedVersions | None:
        """What the index has of a package, or ``None`` when the data does not know."""
        return self._published.get(normalised_package(package))

    def is_published(self, package: str, version: Version) -> bool | None:
        """Whether a version was published; ``None`` when the data does not know."""
        published = self.published_versions(package)
        return None if published is None else published.has(version)

    def advisories_for(self, package: str) -> tuple[Advisory, ...]:
        """Every advisory that names a package."""
        return self._by_package.get(normalised_package(package), ())

    def ids_for(self, package: str) -> frozenset[str]:
        """Every id and alias of the advisories that name a package."""
        name = normalised_package(package)
        return self._ids.of(
            name, lambda: frozenset(known for item in self.advisories_for(name) for known in item.all_ids)
        )

    def matches(self, package: str, raw_version: str) -> tuple[Match, ...]:
        """What every advisory of a package says about a version; remembered, since many manifests share one."""
        name = normalised_package(package)
        return self._matches.of((name, raw_version), lambda: self._judged(name, raw_version))

    def _judged(self, name: str, raw_version: str) -> tuple[Match, ...]:
        subjects = self._subjects.of(name, lambda: tuple(Subject.of(item, name) for item in self.advisories_for(name)))
        version = parse_version(raw_version)
        return tuple(subject.match(version, raw_version) for subject in subjects)

    def live_matches(self, package: str, raw_version: str) -> tuple[Match, ...]:
        """The matches that are not ``not_affected``, worst first."""
        key = (normalised_package(package), raw_version)
        return self._live.of(key, lambda: self._worst_first(*key))

    def _worst_first(self, name: str, raw_version: str) -> tuple[Match, ...]:
        found = (item for item in self.matches(name, raw_version) if item.result is not Result.NOT_AFFECTED)
        return tuple(sorted(found, key=worst_first))

    def why_unknown(self, package: str) -> str | None:
        """Why nothing can be said about a package, or ``None`` when its records were read in full."""
        name = normalised_package(package)
        broken = [item for item in self.quarantined if item.package == name]
        if broken:
            return f"a record about {name} can't be read ({broken[0].id or broken[0].source}: {broken[0].reason})"
        return None if name in self._by_package else f"no advisory data for {name}"


class Facts(Value):
    """What one environment's manifests are judged against."""

    environment: str = "local"
    today: date
    data: AdvisoryData
    policy: Policy = Policy()
    images: tuple[ImageRecord, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    triage: tuple[Triage, ...] = ()
    pools: tuple[NodePool, ...] = ()
    """The environment's node pools; empty = nothing is known about them, and any instance may be taken."""
    prices: PriceTable | None = None
    """``None`` = the table that came with the program."""
    model_configs: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Model id -> its ``config.json``, for models that the catalogue lacks or that the environment has changed."""
    catalogue_digest: str = ""
    """The digest of the engine catalogue that these facts were made with."""

    @cached_property
    def digest(self) -> str:
        """The digest over everything but the day."""
        plain = self.model_dump(mode="json", exclude_none=True, exclude={"today", "data"})
        return digest(plain | {"data": self.data.digest})

    @cached_property
    def _waivers_by_identity(self) -> Mapping[str, tuple[Waiver, ...]]:
        ordered = sorted(self.waivers, key=_by_name)
        return _grouped(ordered, lambda waiver: waiver.identity)

    @cached_property
    def _triage_by_package(self) -> Mapping[str, tuple[Triage, ...]]:
        ordered = sorted(self.triage, key=_by_name)
        return _grouped(ordered, lambda entry: normalised_package(entry.package))

    def waivers_for(self, identity: str) -> tuple[Waiver, ...]:
        """Every waiver of an identity, those that have ended too, by name."""
        return self._waivers_by_identity.get(identity, ())

    def triage_for(self, package: str) -> tuple[Triage, ...]:
        """Every triage entry of a package, those that have ended too, by name."""
        return self._triage_by_package.get(normalised_package(package), ())

    @cached_property
    def _remembered(self) -> Recall[Hashable, Any]:
        return Recall()

    def remember(self, key: Hashable, make: Callable[[], Derived]) -> Derived:
        """What follows from these facts alone, made once: many manifests ask the same."""
        found: Derived = self._remembered.of(key, make)
        return found

    @property
    def as_of(self) -> str | None:
        """How new the advisory data is."""
        return self.data.as_of

    def advisory_age_days(self) -> int | None:
        """Days since the data was read, or ``None`` when that is not known."""
        return None if self.data.retrieved is None else (self.today - self.data.retrieved).days


def _by_name(entry: Waiver | Triage) -> tuple[str, str]:
    """By name, and between two of one name (a file's and the API's) by content: never by who came first."""
    return entry.name, entry.model_dump_json()


def _grouped(entries: Iterable[Entry], key: Callable[[Entry], str]) -> Mapping[str, tuple[Entry, ...]]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return {name: tuple(found) for name, found in groups.items()}
