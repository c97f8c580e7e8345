"""Advisories: records of several sources about one defect, merged by their aliases.

A record keeps facts only (ids, ranges, versions, ratings, dates, references); prose stays with its source.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Literal

from packaging.utils import canonicalize_name
from packaging.version import Version

from fleet.codepath import CodePath
from fleet.severity import Severity, highest
from fleet.value import Value
from fleet.versions import parse_public

RangeType = Literal["ECOSYSTEM", "SEMVER", "GIT"]
PACKAGE_ECOSYSTEMS = frozenset({"PyPI", "NVIDIA", "GitHub"})
"""Ecosystems whose package names mean the engines and libraries of an image: others may reuse a name."""


class EventKind(StrEnum):
    """What happens at a version of a range (OSV 1.7, section affected[].ranges[].events)."""

    INTRODUCED = "introduced"
    FIXED = "fixed"
    LAST_AFFECTED = "last_affected"
    LIMIT = "limit"


class Event(Value):
    """One bound of a range, with the version as its source spells it."""

    kind: EventKind
    version: str


class AffectedRange(Value):
    """One range object of a record; events stand in the order of the source."""

    type: RangeType
    events: tuple[Event, ...]


class AffectedPackage(Value):
    """What one record says about one package."""

    ecosystem: str
    package: str
    """The normalised name (PEP 503)."""
    ranges: tuple[AffectedRange, ...] = ()
    versions: tuple[str, ...] = ()
    is_partial: bool = False
    """The source was read from an excerpt: a version that it does not list is unknown, not cleared."""
    severity: Severity | None = None

    @cached_property
    def listed(self) -> frozenset[Version]:
        """The enumerated versions that can be compared, without their local parts."""
        return frozenset(version for version in map(parse_public, self.versions) if version is not None)


class Reference(Value):
    """A link to the source of a fact."""

    type: str
    url: str


class Record(Value):
    """One security record of one source."""

    id: str
    aliases: tuple[str, ...] = ()
    related: tuple[str, ...] = ()
    incomplete_fix_of: tuple[str, ...] = ()
    """Ids whose fix this record says was incomplete or could be bypassed."""
    published: str | None = None
    modified: str | None = None
    withdrawn: str | None = None
    is_malware: bool = False
    severity: Severity | None = None
    """The highest rating that the record itself gives."""
    affected: tuple[AffectedPackage, ...]
    references: tuple[Reference, ...] = ()

    @property
    def ids(self) -> frozenset[str]:
        """The id and every alias."""
        return frozenset((self.id, *self.aliases))

    def entries_for(self, package: str) -> tuple[AffectedPackage, ...]:
        """What the record says about a package, by its normalised name."""
        return tuple(entry for entry in self.affected if entry.package == package)


class Label(Value):
    """The code paths that a record needs, as a person or a signed rule confirmed them."""

    paths: tuple[CodePath, ...]
    is_confirmed: bool = True
    source: str = ""


class Advisory(Value):
    """One defect: all records that name each other as aliases, ordered by preference of their id."""

    records: tuple[Record, ...]
    labels: tuple[tuple[str, Label], ...] = ()
    """(package, label): labels hold for a package, since one record may name several."""

    @property
    def id(self) -> str:
        """The id that people know: CVE first, then GHSA, then the source's own."""
        return self.all_ids[0]

    @cached_property
    def all_ids(self) -> tuple[str, ...]:
        """Every id and alias, CVE first."""
        return tuple(sorted({name for record in self.records for name in record.ids}, key=id_preference))

    @property
    def aliases(self) -> tuple[str, ...]:
        """The other names of :attr:`id`."""
        return self.all_ids[1:]

    @cached_property
    def is_malware(self) -> bool:
        """Whether any source calls it a malicious release."""
        return any(record.is_malware for record in self.records)

    @property
    def is_withdrawn(self) -> bool:
        """Withdrawn by every source; one source alone only flags it."""
        return all(record.withdrawn for record in self.records)

    @property
    def withdrawn_by(self) -> tuple[str, ...]:
        """Ids of the records that their source has withdrawn."""
        return tuple(record.id for record in self.records if record.withdrawn)

    @property
    def incomplete_fix_of(self) -> tuple[str, ...]:
        """Ids whose fix was incomplete, from any record."""
        return tuple(sorted({name for record in self.records for name in record.incomplete_fix_of}))

    def severity(self, package: str) -> Severity | None:
        """The highest rating of all sources for a package.

        A source that withdrew its copy counts too: it was withdrawn as a duplicate, and another keeps the defect.
        """
        ratings = [record.severity for record in self.records]
        ratings += [entry.severity for record in self.records for entry in record.entries_for(package)]
        return highest(ratings)

    def paths(self, package: str) -> frozenset[CodePath]:
        """The confirmed code paths for a package; empty means every path."""
        labels = [label for name, label in self.labels if name == package]
        if not labels or not all(label.is_confirmed for label in labels):
            return frozenset()
        return frozenset(path for label in labels for path in label.paths)

    @property
    def packages(self) -> frozenset[str]:
        """Every package that a record names."""
        return frozenset(entry.package for record in self.records for entry in record.affected)


@lru_cache(maxsize=4096)
def normalised_package(name: str) -> str:
    """A package name as PEP 503 compares it."""
    return str(canonicalize_name(name))


def id_preference(name: str) -> tuple[int, str]:
    """Sort key: CVE, GHSA, then other sources; never by the year in the number."""
    order = {"CVE": 0, "GHSA": 1, "PYSEC": 2, "MAL": 3}
    return (order.get(name.split("-", 1)[0], 4), name)


def merge(records: Iterable[Record], labels: Mapping[str, Label]) -> tuple[Advisory, ...]:
    """Group records by the transitive closure of their aliases.

    ``labels`` maps ``package/ID`` to a label; it holds for every record that shares the id.
    """
    groups = _closure(list(records))
    advisories = (
        Advisory(
            records=tuple(sorted(group, key=lambda record: id_preference(record.id))), labels=_labels(group, labels)
        )
        for group in groups
    )
    return tuple(sorted(advisories, key=lambda advisory: id_preference(advisory.id)))


def _closure(records: list[Record]) -> list[list[Record]]:
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        parent.setdefault(name, name)
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for record in records:
        for alias in record.aliases:
            parent[root(alias)] = root(record.id)
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(root(record.id), []).append(record)
    return list(groups.values())


def _labels(group: list[Record], labels: Mapping[str, Label]) -> tuple[tuple[str, Label], ...]:
    packages = sorted({entry.package for record in group for entry in record.affected})
    ids = sorted({name for record in group for name in record.ids})
    found = ((package, labels.get(f"{package}/{name}")) for package in packages for name in ids)
    return tuple(dict.fromkeys((package, label) for package, label in found if label is not None))
