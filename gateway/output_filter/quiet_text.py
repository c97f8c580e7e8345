"""Works out which plain words and marks no pattern can grow from, so that prose is not searched at all."""

import re
from collections.abc import Iterable
from enum import Flag, auto
from functools import lru_cache, reduce
from operator import or_
from typing import assert_never

from fleet.pattern_tree import Chain, Chars, Choice, Edge, Node, Repeat, least_width
from gateway.output_filter.linear_regex import LinearRegex

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LONGEST_HELD = 64
"""Letters that may be held without asking; a longer run is asked about."""
_CAPITALS, _SMALL = LETTERS[:26], LETTERS[26:]
_ASCII = "".join(map(chr, range(128)))
_MARKS = " \n\t,.;:!?\"'()[]{}*#`/=|<>-"


class Quiet:
    """Tells prose: words and marks in which no value is, and of which only the last word can become one.

    A word is made of letters, no two capitals next to each other. Each pattern comes with whether it ignores case.
    """

    __slots__ = ("_long_word", "_loud", "_soft")

    def __init__(self, patterns: Iterable[tuple[Node, bool]]) -> None:
        patterns = list(patterns)
        reached = frozenset().union(*(_walk(node, _Ends.EMPTY, fold)[1] for node, fold in patterns))
        runs = [run for node, fold in patterns if (run := _letters_width(node, fold)) is not None]
        self._long_word = max(1, min(runs)) if runs else LONGEST_HELD
        """A word of so many letters may be a value."""
        marks = re.escape("".join(sorted(set(_MARKS) - reached)))
        self._loud = re.compile(f"[^A-Za-z{marks}]|[A-Z]{{2}}|[A-Za-z]{{{self._long_word}}}")
        self._soft = re.compile(f"[a-z{marks}]*")

    def is_prose(self, text: str) -> bool:
        """Whether it is nothing else."""
        return self._loud.search(text) is None

    def hold(self, text: str, more: str, *, was_prose: bool) -> int | None:
        """Where the letters at the end of prose begin; None = it must be searched.

        ``more`` is what the text ends with; ``was_prose`` = what is before it is known to be prose. Then small letters,
        too few of them for a long word, are prose at a glance, as is most of what models write.
        """
        is_soft = was_prose and len(text) < self._long_word and self._soft.fullmatch(more) is not None
        if not is_soft and self._loud.search(text) is not None:
            return None
        start = len(text.rstrip(LETTERS))
        return start if len(text) - start <= LONGEST_HELD else None


def openings(node: Node, *, ignore_case: bool) -> frozenset[str]:
    """The ASCII characters that a match can begin with."""
    match node:
        case Chars(text):
            return ascii_members(text, ignore_case)
        case Edge():
            return frozenset()
        case Chain(parts):
            found: frozenset[str] = frozenset()
            for part in parts:
                found |= openings(part, ignore_case=ignore_case)
                if least_width(part):
                    break
            return found
        case Choice(options):
            return frozenset().union(*(openings(option, ignore_case=ignore_case) for option in options))
        case Repeat(part):
            return openings(part, ignore_case=ignore_case)
        case _:
            assert_never(node)


@lru_cache(maxsize=4096)
def ascii_members(text: str, ignore_case: bool) -> frozenset[str]:
    """The ASCII characters of a set of characters."""
    if text.startswith("\\x{") and not ignore_case:
        return frozenset(chr(int(text[3:-1], 16)))
    return frozenset(LinearRegex(text, ignore_case=ignore_case).each(_ASCII))


def _letters_width(node: Node, ignore_case: bool) -> int | None:
    """The fewest letters that it matches with nothing else between them; None = it needs something else."""
    match node:
        case Chars(text):
            return None if ascii_members(text, ignore_case).isdisjoint(LETTERS) else 1
        case Edge():
            return 0
        case Chain(parts):
            widths = [_letters_width(part, ignore_case) for part in parts]
            return None if None in widths else sum(filter(None, widths))
        case Choice(options):
            widths = [_letters_width(option, ignore_case) for option in options]
            return min((width for width in widths if width is not None), default=None)
        case Repeat(part, least, _):
            once = _letters_width(part, ignore_case) if least else 0
            return None if once is None else least * once
        case _:
            assert_never(node)


class _Ends(Flag):
    """How a piece of a word, not empty or yet empty, may end."""

    EMPTY = auto()
    CAPITAL = auto()
    SMALL = auto()


_Walked = tuple[_Ends, frozenset[str]]
"""How the words that a node matches may end, and the marks that it can take after a word."""
_NOWHERE = _Ends(0)


def _walk(node: Node, ends: _Ends, ignore_case: bool) -> _Walked:
    if not ends:
        return _NOWHERE, frozenset()
    match node:
        case Chars(text):
            return _step(ascii_members(text, ignore_case), ends)
        case Edge():
            return ends, frozenset()
        case Chain(parts):
            reached: frozenset[str] = frozenset()
            for part in parts:
                ends, marks = _walk(part, ends, ignore_case)
                reached |= marks
            return ends, reached
        case Choice(options):
            walked = [_walk(option, ends, ignore_case) for option in options]
            return reduce(or_, (end for end, _ in walked)), frozenset().union(*(marks for _, marks in walked))
        case Repeat():
            return _walk_again(node, ends, ignore_case)
        case _:
            assert_never(node)


def _step(members: frozenset[str], ends: _Ends) -> _Walked:
    after = _NOWHERE
    if not members.isdisjoint(_CAPITALS) and ends & (_Ends.EMPTY | _Ends.SMALL):
        after |= _Ends.CAPITAL
    if not members.isdisjoint(_SMALL):
        after |= _Ends.SMALL
    return after, members & frozenset(_MARKS)


def _walk_again(node: Repeat, ends: _Ends, ignore_case: bool) -> _Walked:
    after = ends if node.least == 0 else _NOWHERE
    reached: frozenset[str] = frozenset()
    # Three ways to end: after as many rounds nothing new can come.
    for round_number in range(1, min(node.most, node.least + 3) + 1):
        ends, marks = _walk(node.part, ends, ignore_case)
        reached |= marks
        after |= ends if round_number >= node.least else _NOWHERE
    return after, reached
