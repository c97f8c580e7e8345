"""Finds the values of a set of detectors in a text, and what at its end may still become one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleet.pattern_tree import Node, beginnings, source, width
from gateway.output_filter.detectors import Detector
from gateway.output_filter.glances import Glances
from gateway.output_filter.linear_regex import EncodedText, LinearRegex
from gateway.output_filter.quiet_text import Quiet, openings

_DIGITS = re.compile("[0-9]+")
_DIGIT_SET = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Found:
    """A value: where it stands and of which class."""

    start: int
    end: int
    name: str
    label: str
    tail: re.Pattern[str] | None = None
    """What follows belongs to the value for as long as it matches; None = nothing does."""


class Compiled:
    """One detector, ready."""

    __slots__ = ("_ahead", "_first", "_regex", "detector", "hint", "tail")

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self._regex = LinearRegex(source(detector.tree), ignore_case=detector.ignore_case)
        self._first = openings(detector.tree, ignore_case=detector.ignore_case)
        self._ahead: LinearRegex | None = None
        self.hint = re.compile(detector.hint) if detector.hint else None
        self.tail = re.compile(f"{detector.tail}+") if detector.tail else None

    def find_at(self, encoded: EncodedText, start: int) -> Found | None:
        """The value that begins there."""
        text, detector = encoded.text, self.detector
        if text[start] not in self._first and text[start].isascii():
            return None
        if start and text[start - 1] in detector.not_after:
            return None
        longest = self._regex.match(encoded, start)
        end = detector.confirm(text, start, longest) if longest else 0
        if not end:
            return None
        followed = self.tail.match(text, end) if self.tail else None
        return Found(start, followed.end() if followed else end, detector.name, detector.label, self.tail)

    def may_grow(self, encoded: EncodedText, start: int) -> bool:
        """Whether the rest of the text from there can still become a value of it."""
        if self._ahead is None:
            self._ahead = LinearRegex(f"{beginnings(self.detector.tree)}\\z", ignore_case=self.detector.ignore_case)
        return self._ahead.match(encoded, start) is not None


class Matcher:
    """Several detectors as one; where two find a value at the same place, the order of the detectors decides."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        self.width = max((width(detector.tree) for detector in detectors), default=0)
        self._all = [Compiled(detector) for detector in detectors]
        self._groups = [
            _Group([compiled for compiled in self._all if bool(compiled.detector.not_after) is bounded])
            for bounded in (False, True)
        ]
        self._beginnings = LinearRegex(f"(?:{_joined(detectors, beginnings)})\\z") if detectors else None
        self.quiet = Quiet((detector.tree, detector.ignore_case) for detector in detectors)
        """Tells what need not be searched."""
        self.glances = Glances(self.quiet)

    def held_from(self, encoded: EncodedText, start: int) -> int:
        """From where on the text may still become a value; its length = nowhere."""
        if self._beginnings is None or start >= len(encoded.text):
            return len(encoded.text)
        found = self._beginnings.search(encoded, start)
        return len(encoded.text) if found is None else found

    def finds(self, encoded: EncodedText) -> "Finds":
        """What is found in a text."""
        return Finds(encoded, self._groups)

    def likely(self, encoded: EncodedText, start: int) -> Detector | None:
        """The first detector of which a held text may become a value."""
        return next((one.detector for one in self._all if one.may_grow(encoded, start)), None)

    def may_become_own(self, encoded: EncodedText, start: int) -> bool:
        """Whether a held text may become a value of a tenant's own class."""
        return any(one.may_grow(encoded, start) for one in self._all if one.detector.is_own)


class Finds:
    """The values in one text, asked for from its front to its end. What was searched is not searched again."""

    __slots__ = ("_encoded", "_known")

    def __init__(self, encoded: EncodedText, groups: Sequence["_Group"]) -> None:
        self._encoded = encoded
        self._known: list[tuple[_Group, int, Found | None]] = [(group, 0, None) for group in groups]
        """(group, where it was searched to, the value that begins there)."""

    def first(self, start: int, before: int) -> Found | None:
        """The first value that begins in a part of the text; no later one may begin before this one does."""
        best: Found | None = None
        for number, (group, searched, found) in enumerate(self._known):
            known = found
            if (known is None and searched < before) or (known is not None and known.start < start):
                known, searched = group.find(self._encoded, max(start, searched), before)
                self._known[number] = (group, searched, known)
            if known is not None and known.start < before and (best is None or known.start < best.start):
                best, before = known, known.start + 1
        return best


class _Group:
    """Detectors that are searched for in one go."""

    __slots__ = ("_any", "_hint", "_is_bounded", "_members")

    def __init__(self, members: Sequence[Compiled]) -> None:
        self._members = members
        self._is_bounded = all(member.detector.not_after >= _DIGIT_SET for member in members)
        hints = [member.hint.pattern if member.hint else "" for member in members]
        self._hint = re.compile("|".join(sorted(set(hints)))) if all(hints) else None
        self._any = LinearRegex(_joined([member.detector for member in members], source)) if members else None

    def find(self, encoded: EncodedText, start: int, before: int) -> tuple[Found | None, int]:
        """The first value that begins in a part of the text, and where it does, or up to where none begins."""
        text = encoded.text
        if self._any is None or (self._hint is not None and self._hint.search(text, start) is None):
            return None, len(text)
        at = start
        while at < before:
            candidate = self._any.search(encoded, at)
            if candidate is None or candidate >= before:
                return None, len(text) if candidate is None else candidate
            for member in self._members:
                if (found := member.find_at(encoded, candidate)) is not None:
                    return found, candidate
            digits = _DIGITS.match(text, candidate) if self._is_bounded else None
            at = digits.end() if digits else candidate + 1  # nothing of a bounded group begins behind a digit
        return None, at


def _joined(detectors: Sequence[Detector], written: Callable[[Node], str]) -> str:
    return "|".join(f"(?{'i' if one.ignore_case else '-i'}:{written(one.tree)})" for one in detectors)
