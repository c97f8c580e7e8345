"""Does an advisory affect a version? The OSV algorithm (schema 1.7, evaluation), with answers that say "not known".

Bounds are compared with `packaging.version.Version` on the public part. A range ends in ``fixed`` (safe from there
on), in ``last_affected`` (nothing is known above it unless some source names a fix) or not at all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from packaging.version import Version

from fleet.advisory import Advisory, AffectedPackage, EventKind, Record
from fleet.codepath import CodePath
from fleet.intervals import Bounds
from fleet.severity import Severity, sorting_rank
from fleet.versions import is_unreleased_build, parse_version, public, shown


class Result(StrEnum):
    """What a record says about a version, in order of precedence."""

    AFFECTED = "affected"
    NO_FIX_KNOWN = "no_fix_known"
    UNKNOWN = "unknown"
    NOT_AFFECTED = "not_affected"

    @property
    def strictness(self) -> int:
        """3 for affected down to 0 for not affected."""
        return _STRICTNESS[self]


_STRICTNESS = {result: strictness for strictness, result in enumerate(reversed(Result))}


@dataclass(frozen=True, slots=True)
class Answer:
    """A result and the sentence that explains it."""

    result: Result
    reason: str
    is_silent: bool = False
    """The source gives nothing to compare: only commits, or neither a range nor versions."""


def strictest(answers: Iterable[Answer], *, otherwise: Answer) -> Answer:
    """The answer that counts when several are given; the first of equals."""
    return max(answers, key=lambda answer: answer.result.strictness, default=otherwise)


@dataclass(frozen=True, slots=True)
class Match:
    """What one advisory says about one version of one package."""

    advisory: Advisory
    package: str
    result: Result
    reason: str
    severity: Severity | None
    paths: frozenset[CodePath]
    """Confirmed code paths; empty means every path."""
    fixed: tuple[str, ...]
    """Versions that any source names as fixed, ascending."""
    by_source: tuple[tuple[str, Answer], ...]
    """Each record's own answer, so that two sources that disagree are both shown."""

    @property
    def sources_disagree(self) -> bool:
        """Whether the records give more than one result."""
        return len({answer.result for _, answer in self.by_source}) > 1


def worst_first(match: Match) -> tuple[int, int, str]:
    """Sort key: strictest result, then highest severity, then id."""
    return (-match.result.strictness, -sorting_rank(match.severity), match.advisory.id)


@dataclass(frozen=True, slots=True)
class _Entry:
    """What one record says about a package, with the ranges that can be compared read into bounds."""

    affected: AffectedPackage
    ranges: tuple[Bounds, ...]

    @classmethod
    def of(cls, affected: AffectedPackage) -> "_Entry":
        return cls(affected, tuple(Bounds.read(item) for item in affected.ranges if item.type != "GIT"))


@dataclass(frozen=True, slots=True)
class Subject:
    """One advisory about one package: everything that does not depend on a version, worked out once."""

    advisory: Advisory
    package: str
    severity: Severity | None
    paths: frozenset[CodePath]
    fixed: tuple[str, ...]
    fixes: tuple[Version, ...]
    entries: tuple[tuple[Record, tuple[_Entry, ...]], ...]

    @classmethod
    def of(cls, advisory: Advisory, package: str) -> "Subject":
        """The subject that an advisory and one of its packages make."""
        live = [record for record in advisory.records if not record.withdrawn]
        named = named_fixes(live, package)
        return cls(
            advisory=advisory,
            package=package,
            severity=advisory.severity(package),
            paths=advisory.paths(package),
            fixed=tuple(dict.fromkeys(named.values())),
            fixes=tuple(map(public, named)),
            entries=tuple((record, tuple(map(_Entry.of, record.entries_for(package)))) for record in advisory.records),
        )

    def match(self, version: Version | None, raw: str) -> Match:
        """Judge one version; ``version`` is ``None`` when ``raw`` is not a version, and then nothing is known."""
        answers = [
            (record, _record_answer(record, entries, version, raw, self.fixes)) for record, entries in self.entries
        ]
        counted = [answer for record, answer in answers if not record.withdrawn]
        decided = strictest(_heard(counted), otherwise=_WITHDRAWN)
        return Match(
            advisory=self.advisory,
            package=self.package,
            result=decided.result,
            reason=decided.reason,
            severity=self.severity,
            paths=self.paths,
            fixed=self.fixed,
            by_source=tuple((record.id, answer) for record, answer in answers),
        )


_WITHDRAWN = Answer(Result.NOT_AFFECTED, "withdrawn by every source")
_NOT_NAMED = Answer(Result.NOT_AFFECTED, "the record does not name this package")
_OUTSIDE = Answer(Result.NOT_AFFECTED, "outside every range")


def match(advisory: Advisory, package: str, version: Version | None, raw: str) -> Match:
    """Judge one version of one package by one advisory; ``version`` is ``None`` when ``raw`` is not a version."""
    return Subject.of(advisory, package).match(version, raw)


def _heard(answers: Sequence[Answer]) -> Sequence[Answer]:
    """The answers that count: a silent source stays out where another one could be compared with the version."""
    speaking = [answer for answer in answers if not answer.is_silent]
    return speaking if any(answer.result is not Result.UNKNOWN for answer in speaking) else answers


def named_fixes(records: Iterable[Record], package: str) -> dict[Version, str]:
    """Versions that any of the records names as fixed for a package, ascending, with their shortest spelling."""
    events = (
        event
        for record in records
        for entry in record.entries_for(package)
        for affected_range in entry.ranges
        if affected_range.type != "GIT"
        for event in affected_range.events
        if event.kind is EventKind.FIXED
    )
    parsed = {(version, shown(event.version)) for event in events if (version := parse_version(event.version))}
    return dict(sorted(parsed, key=lambda item: (item[0], -len(item[1]))))


def _record_answer(
    record: Record, entries: Sequence[_Entry], version: Version | None, raw: str, fixes: Sequence[Version]
) -> Answer:
    if record.withdrawn:
        return Answer(Result.NOT_AFFECTED, f"withdrawn on {record.withdrawn}")
    return strictest([_entry_answer(entry, version, raw, fixes) for entry in entries], otherwise=_NOT_NAMED)


def _entry_answer(entry: _Entry, version: Version | None, raw: str, fixes: Sequence[Version]) -> Answer:
    if _is_listed(entry.affected, version, raw):
        return Answer(Result.AFFECTED, f"{raw} is listed as affected")
    if version is None:
        return Answer(Result.UNKNOWN, f"'{raw}' is not a version that can be compared")
    if is_unreleased_build(version):
        return Answer(Result.UNKNOWN, f"{raw} is a development build: its number does not say which fixes it holds")
    if not entry.ranges:
        return _unranged_answer(entry.affected, public(version))
    return strictest([_range_answer(item, public(version), fixes) for item in entry.ranges], otherwise=_OUTSIDE)


def _is_listed(entry: AffectedPackage, version: Version | None, raw: str) -> bool:
    return raw in entry.versions if version is None else public(version) in entry.listed


def _unranged_answer(entry: AffectedPackage, version: Version) -> Answer:
    """Judge an entry without a comparable range: by its list alone, where the list is complete."""
    if not entry.versions:
        kind = "only commits" if entry.ranges else "neither a range nor versions"
        return Answer(Result.UNKNOWN, f"the record gives {kind}", is_silent=True)
    if entry.is_partial:
        return Answer(Result.UNKNOWN, "only an excerpt of the record is known; other versions may be affected")
    if _lists_lines(entry, version):
        return Answer(Result.UNKNOWN, f"the record lists release lines, and {version} is in one of them")
    ends = {EventKind.FIXED, EventKind.LAST_AFFECTED, EventKind.LIMIT}
    is_open = any(all(event.kind not in ends for event in item.events) for item in entry.ranges)
    if is_open and (not entry.listed or version > max(entry.listed)):
        return Answer(Result.UNKNOWN, "above the listed versions, and the commit range has no end")
    return Answer(Result.NOT_AFFECTED, "not among the listed versions")


def _lists_lines(entry: AffectedPackage, version: Version) -> bool:
    """Whether a list of nothing but minors (``0.1``, ``0.2``) may mean every release that starts with one of them."""
    lines = {listed.release for listed in map(parse_version, entry.versions) if listed is not None}
    if len(lines) < 2 or any(len(line) >= min(len(version.release), 3) for line in lines):
        return False
    return any(version.release[: len(line)] == line for line in lines)


def _range_answer(bounds: Bounds, version: Version, fixes: Sequence[Version]) -> Answer:
    if bounds.unreadable is not None:
        return Answer(Result.UNKNOWN, bounds.unreadable)
    if bounds.is_beyond(version):
        return Answer(Result.NOT_AFFECTED, "beyond the limit of the range")
    inside = next((interval for interval in bounds.intervals if interval.contains(version)), None)
    if inside is not None:
        return Answer(Result.AFFECTED, f"in {inside.words}")
    return _above_answer(bounds, version, fixes)


def _above_answer(bounds: Bounds, version: Version, fixes: Sequence[Version]) -> Answer:
    for interval in bounds.intervals:
        bound = interval.last_affected
        if bound is not None and bound < version and not any(bound < fix <= version for fix in fixes):
            return Answer(
                Result.NO_FIX_KNOWN, f"above the last version known to be affected ({bound}), and no source names a fix"
            )
    return Answer(Result.NOT_AFFECTED, f"outside {bounds.words}")
