"""What the events of a range mean: intervals of affected versions (OSV schema 1.7, evaluation)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from packaging.version import Version

from fleet.advisory import AffectedRange, Event, EventKind
from fleet.versions import parse_public


@dataclass(frozen=True, slots=True)
class Interval:
    """Affected versions from ``start`` (``None``: the first) to an end, if one is known."""

    start: Version | None
    fixed: Version | None = None
    last_affected: Version | None = None
    words: str = field(init=False)
    """The interval as people read it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", _words(self))

    def contains(self, version: Version) -> bool:
        """Whether a version without its local part lies inside."""
        if self.start is not None and version < self.start:
            return False
        if self.fixed is not None:
            return version < self.fixed
        return self.last_affected is None or version <= self.last_affected


@dataclass(frozen=True, slots=True)
class Bounds:
    """A range, read once for all versions that are held against it."""

    intervals: tuple[Interval, ...] = ()
    limits: tuple[Version | None, ...] = ()
    """``None`` is a limit that ends nothing."""
    unreadable: str | None = None
    """Why nothing can be compared with this range."""
    words: str = ""
    """All intervals as people read them."""

    @classmethod
    def read(cls, affected: AffectedRange) -> "Bounds":
        """The bounds of a range whose events stand in any order."""
        if not affected.events:
            return cls(unreadable="the range has no events")
        bounds = [(event, _bound(event)) for event in affected.events]
        bad = [event.version for event, bound in bounds if bound is None and not _is_open_bound(event)]
        if bad:
            return cls(unreadable=f"the bound '{bad[0]}' is not a version that can be compared")
        limits = tuple(bound for event, bound in bounds if event.kind is EventKind.LIMIT)
        found = _intervals([(event.kind, bound) for event, bound in bounds if event.kind is not EventKind.LIMIT])
        words = ", ".join(interval.words for interval in found) or "an empty range"
        return cls(intervals=found, limits=limits, words=words)

    def is_beyond(self, version: Version) -> bool:
        """Whether every limit of the range ends before the version."""
        return bool(self.limits) and all(limit is not None and version >= limit for limit in self.limits)


def _is_open_bound(event: Event) -> bool:
    return (event.kind is EventKind.INTRODUCED and event.version == "0") or (
        event.kind is EventKind.LIMIT and event.version == "*"
    )


def _bound(event: Event) -> Version | None:
    return None if _is_open_bound(event) else parse_public(event.version)


def _intervals(bounds: Sequence[tuple[EventKind, Version | None]]) -> tuple[Interval, ...]:
    """Turn unsorted events into intervals; a range that names no start starts at the first version."""
    ordered = sorted(bounds, key=lambda item: (item[1] is not None, item[1] or Version("0")))
    closed: list[Interval] = []
    start: Version | None = None
    is_open = all(kind is not EventKind.INTRODUCED for kind, _ in ordered)
    for bound, group in groupby(ordered, key=lambda item: item[1]):
        kinds = {kind for kind, _ in group}
        if is_open and EventKind.FIXED in kinds:
            closed.append(Interval(start, fixed=bound))
            is_open = False
            kinds.discard(EventKind.FIXED)
        if not is_open and EventKind.INTRODUCED in kinds:
            start, is_open = bound, True
        if is_open and EventKind.FIXED in kinds:
            is_open = False
        if is_open and EventKind.LAST_AFFECTED in kinds:
            closed.append(Interval(start, last_affected=bound))
            is_open = False
    if is_open:
        closed.append(Interval(start))
    return tuple(closed)


def _words(interval: Interval) -> str:
    start = f">= {interval.start}" if interval.start is not None else "every version"
    if interval.fixed is not None:
        return f"{start} before {interval.fixed}"
    if interval.last_affected is not None:
        return f"{start} up to {interval.last_affected}"
    return f"{start} without an end"
