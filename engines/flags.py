"""The flags of an engine by version: which version takes which spelling, value and default."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from packaging.version import Version

from fleet.nearest import closest
from fleet.recall import Recall
from fleet.spec import EngineName
from fleet.versions import parse_version, public

_T = TypeVar("_T")
NEGATIVE = "--no-"
BOTH, SWITCH, LIST, VALUE = "both", "switch", "list", "value"
"""Kinds: ``--x`` and ``--no-x``; ``--x`` alone; several values; one value."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One setting over all known versions."""

    name: str
    kind: str
    type: str | None
    """``int`` or ``float`` where that is known."""
    presence: Mapping[str, frozenset[int]]
    """Spelling -> positions of the versions that take it."""
    choices: tuple[tuple[int, tuple[str, ...] | None], ...]
    """From which position on which values are taken; ``None`` = not known."""
    defaults: tuple[tuple[int, object], ...]

    def choices_at(self, position: int) -> tuple[str, ...] | None:
        """The values that the version takes, or ``None`` when any may be right."""
        return _at(self.choices, position)

    def default_at(self, position: int) -> object:
        """The default of the version; an expression is text."""
        return _at(self.defaults, position)


def _at(history: tuple[tuple[int, _T], ...], position: int) -> _T | None:
    found = None
    for start, value in history:
        if start <= position:
            found = value
    return found


@dataclass(frozen=True)
class FlagBook:
    """All flag lists of one engine."""

    engine: EngineName
    source: str
    versions: tuple[str, ...]
    """The versions whose list is known, ascending."""
    flags: Mapping[str, Flag]
    fixed_note: str | None = None
    """Set when one list stands for every version."""
    _taken: dict[int, Mapping[str, Flag]] = field(default_factory=dict, repr=False, compare=False)
    _near: Recall[str, tuple[str, ...]] = field(default_factory=Recall, repr=False, compare=False)
    _lists: Recall[str, "FlagList"] = field(default_factory=Recall, repr=False, compare=False)

    @classmethod
    def read(cls, engine: EngineName, document: Mapping[str, Any], *, fixed_note: str | None = None) -> "FlagBook":
        """From an extract of ``data/flags``."""
        versions = tuple(document["versions"])
        position = {version: index for index, version in enumerate(versions)}
        flags = {name: _flag(name, entry, position) for name, entry in document["flags"].items()}
        return cls(engine, document["source"], versions, flags, fixed_note)

    @cached_property
    def spellings(self) -> Mapping[str, Flag]:
        """Every spelling that any version takes, without the negative ones."""
        return {spelling: flag for flag in self.flags.values() for spelling in flag.presence}

    @cached_property
    def _parsed(self) -> tuple[Version, ...]:
        return tuple(map(Version, self.versions))

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Spelling -> the one name of its setting; negative spellings too, where there are any."""
        found = {spelling: flag.name for spelling, flag in self.spellings.items()}
        negatives = {
            f"{NEGATIVE}{spelling.removeprefix('--')}": flag.name
            for spelling, flag in self.spellings.items()
            if flag.kind == BOTH
        }
        return negatives | found

    def taken(self, position: int) -> Mapping[str, Flag]:
        """What a version takes, without the negative spellings."""
        if position not in self._taken:
            self._taken[position] = {
                spelling: flag for spelling, flag in self.spellings.items() if position in flag.presence[spelling]
            }
        return self._taken[position]

    def at(self, version: str) -> "FlagList":
        """The list that stands for a version: its own, else the nearest older one, else the oldest."""
        return self._lists.of(version, lambda: self._list(version))

    def _list(self, version: str) -> "FlagList":
        parsed = parse_version(version)
        if self.fixed_note is not None or parsed is None:
            return FlagList(self, len(self.versions) - 1, version, self.fixed_note or _unreadable(version, self))
        found = bisect_right(self._parsed, public(parsed)) - 1
        if found < 0:
            note = f"no flag list of {self.engine} {version} or older is known; that of {self.versions[0]} was taken"
            return FlagList(self, 0, version, note, is_older=True)
        if self._parsed[found] == public(parsed):
            return FlagList(self, found, version, None)
        older = self.versions[found]
        note = f"no flag list of {self.engine} {version} is known; that of {older}, the nearest older, was taken"
        return FlagList(self, found, version, note)

    def near(self, spelling: str) -> tuple[str, ...]:
        """The closest spellings that any version takes, closest first."""
        return self._near.of(spelling, lambda: closest(spelling, self.spellings, most=8))

    def where(self, spelling: str) -> str:
        """Which known versions take a spelling, as the end of a sentence."""
        flag = self.spellings.get(positive(spelling))
        positions = sorted(flag.presence[positive(spelling)]) if flag else []
        if not positions:
            return "no known version has it"
        first, last = self.versions[positions[0]], self.versions[positions[-1]]
        newest = len(self.versions) - 1
        if positions[-1] == newest:
            return f"it is from {first} on"
        return f"removed; last in {last}" if first != last else f"removed; it was in {last}"


def _unreadable(version: str, book: FlagBook) -> str:
    return f"'{version}' is not a version; the flag list of {book.engine} {book.versions[-1]} was taken"


def positive(spelling: str) -> str:
    """``--x`` for ``--no-x``; a flag whose own name begins with ``--no-`` is not known in any engine."""
    return f"--{spelling.removeprefix(NEGATIVE)}" if spelling.startswith(NEGATIVE) else spelling


@dataclass(frozen=True)
class FlagList:
    """The flags that one version takes."""

    book: FlagBook
    position: int
    version: str
    note: str | None
    """Says that the list is not the version's own."""
    is_older: bool = False
    """True when the version is older than every known list: nothing is known about it."""

    @property
    def of(self) -> str:
        """The version whose list this is."""
        return self.book.versions[self.position]

    @property
    def spellings(self) -> Mapping[str, Flag]:
        """What the version takes, without the negative spellings."""
        return self.book.taken(self.position)

    def has(self, spelling: str) -> bool:
        """Whether the version takes a spelling; ``--no-x`` where ``--x`` can be negated."""
        if spelling in self.spellings:
            return True
        flag = self.spellings.get(positive(spelling))
        return flag is not None and spelling.startswith(NEGATIVE) and flag.kind == BOTH

    def flag(self, spelling: str) -> Flag | None:
        """The setting behind a spelling, where the version takes it."""
        return self.spellings.get(spelling) or (self.spellings.get(positive(spelling)) if self.has(spelling) else None)

    def name(self, spelling: str) -> str:
        """The one name of a setting, however it is spelled."""
        return self.book.names.get(spelling, spelling)

    def choices(self, spelling: str) -> tuple[str, ...] | None:
        """The values that the version takes, or ``None`` when any may be right."""
        flag = self.flag(spelling)
        return flag.choices_at(self.position) if flag else None

    def nearest(self, spelling: str) -> str | None:
        """The closest spelling that the version takes."""
        return next((known for known in self.book.near(spelling) if known in self.spellings), None)


def _flag(name: str, entry: Mapping[str, Any], position: Mapping[str, int]) -> Flag:
    presence = {name: _positions(entry["in"], position)}
    presence |= {other: _positions(ranges, position) for other, ranges in entry.get("also", {}).items()}
    choices = tuple(
        (position[version], tuple(values) if values is not None else None)
        for version, values in entry.get("choices", ())
    )
    defaults = tuple((position[version], value) for version, value in entry.get("default", ()))
    return Flag(name, entry.get("kind", VALUE), entry.get("type"), presence, choices, defaults)


def _positions(ranges: Iterable[tuple[str, str]], position: Mapping[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for first, last in ranges:
        found.update(range(position[first], position[last] + 1))
    return frozenset(found)
