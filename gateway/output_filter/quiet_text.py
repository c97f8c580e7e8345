"""Works out which plain words and marks no pattern can grow from, so that prose is not searched at all."""

import re
from collections.abc import Iterable, Sequence
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

    A word is made of letters, no two capitals next to each other. Marks that patterns go over, as an email address
    does over a full stop, join words: from inside such a chain only another search tells where a value may begin.
    Each pattern comes with whether it ignores case.
    """

    __slots__ = ("_chain", "_long_word", "_loud", "_soft", "_string", "joints")

    def __init__(self, patterns: Iterable[tuple[Node, bool]]) -> None:
        patterns = list(patterns)
        self._long_word, reached = _walk_all(patterns, frozenset())
        self.joints: frozenset[str] = frozenset()
        """The marks that may stand between the words of a value."""
        for mark in sorted(reached):
            shortest, beyond = _walk_all(patterns, self.joints | {mark})
            if shortest >= self._long_word and beyond <= reached:
                self.joints |= {mark}
        carried = max((_carried(node, fold) for node, fold in patterns), key=len, default=frozenset())
        self._string = LETTERS + "".join(sorted(self.joints & carried))
        self._chain = LETTERS + "".join(sorted(self.joints))
        marks = re.escape("".join(sorted(set(_MARKS) - reached)))
        joints = re.escape("".join(sorted(self.joints)))
        self._loud = re.compile(f"[^A-Za-z{marks}{joints}]|[A-Z]{{2}}|[A-Za-z{joints}]{{{self._long_word}}}")
        self._soft = re.compile(f"[a-z{marks}{joints}]*")

    @property
    def long_word(self) -> int:
        """A word, or a chain of words, of so many characters may be a value."""
        return self._long_word

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
        return len(text.rstrip(LETTERS))

    def word(self, text: str) -> int | None:
        """Where the word at the end of prose begins; a value may begin with any word, and with nothing before it.

        An email address begins with any word, full stops in it or not. None = there are other joints around.
        """
        start = self.last_word(text)
        if start and text[start - 1] in self.joints:
            return None
        return start if text[start : start + 1].isalpha() or start == len(text) else None

    def last_word(self, text: str) -> int:
        """Where the last word of a text begins, whatever is before it; a text may be a piece of one alone."""
        return len(text.rstrip(self._string))

    def chain(self, text: str) -> int:
        """Where the chain of words at the end of prose begins; no value begins before it and goes on."""
        return len(text.rstrip(self._chain))


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


def _carried(node: Node, ignore_case: bool) -> frozenset[str]:
    """The characters that may stand anywhere in a word but at its beginning, so that every such word begins a match."""
    match node:
        case Chain((Chars(first), Repeat(Chars(text), 0, most), *_)) if most >= LONGEST_HELD - 1:
            letters, members = frozenset(LETTERS), ascii_members(text, ignore_case)
            return members if letters <= members and letters <= ascii_members(first, ignore_case) else frozenset()
        case _:
            return frozenset()


def _walk_all(patterns: Sequence[tuple[Node, bool]], joints: frozenset[str]) -> tuple[int, frozenset[str]]:
    """The length of the shortest value that is a chain of letters and joints, and the marks reached by such chains."""
    widths = [_chain_width(node, fold, joints) for node, fold in patterns]
    shortest = min((width for width in widths if width is not None), default=LONGEST_HELD)
    reached: frozenset[str] = frozenset()
    for node, fold in patterns:
        reached |= _walk(node, _Ends.EMPTY, fold, joints)[1]
    return max(1, min(shortest, LONGEST_HELD)), reached


def _chain_width(node: Node, ignore_case: bool, joints: frozenset[str]) -> int | None:
    """The fewest letters and joints that it matches with nothing else between; None = it needs something else."""
    match node:
        case Chars(text):
            members = ascii_members(text, ignore_case)
            return None if members.isdisjoint(LETTERS) and members.isdisjoint(joints) else 1
        case Edge():
            return 0
        case Chain(parts):
            widths = [_chain_width(part, ignore_case, joints) for part in parts]
            return None if None in widths else sum(filter(None, widths))
        case Choice(options):
            widths = [_chain_width(option, ignore_case, joints) for option in options]
            return min((width for width in widths if width is not None), default=None)
        case Repeat(part, least, _):
            once = _chain_width(part, ignore_case, joints) if least else 0
            return None if once is None else least * once
        case _:
            assert_never(node)


class _Ends(Flag):
    """How a piece of a word, not empty or yet empty, may end."""

    EMPTY = auto()
    CAPITAL = auto()
    SMALL = auto()
    JOINT = auto()


_Walked = tuple[_Ends, frozenset[str]]
"""How the words that a node matches may end, and the marks that it can take after a word."""
_NOWHERE = _Ends(0)


def _walk(node: Node, ends: _Ends, ignore_case: bool, joints: frozenset[str]) -> _Walked:
    if not ends:
        return _NOWHERE, frozenset()
    match node:
        case Chars(text):
            return _step(ascii_members(text, ignore_case), ends, joints)
        case Edge():
            return ends, frozenset()
        case Chain(parts):
            reached: frozenset[str] = frozenset()
            for part in parts:
                ends, marks = _walk(part, ends, ignore_case, joints)
                reached |= marks
            return ends, reached
        case Choice(options):
            walked = [_walk(option, ends, ignore_case, joints) for option in options]
            return reduce(or_, (end for end, _ in walked)), frozenset().union(*(marks for _, marks in walked))
        case Repeat():
            return _walk_again(node, ends, ignore_case, joints)
        case _:
            assert_never(node)


def _step(members: frozenset[str], ends: _Ends, joints: frozenset[str]) -> _Walked:
    after = _NOWHERE
    if not members.isdisjoint(_CAPITALS) and ends & ~_Ends.CAPITAL:
        after |= _Ends.CAPITAL
    if not members.isdisjoint(_SMALL):
        after |= _Ends.SMALL
    if not members.isdisjoint(joints):
        after |= _Ends.JOINT
    return after, members & frozenset(_MARKS)


def _walk_again(node: Repeat, ends: _Ends, ignore_case: bool, joints: frozenset[str]) -> _Walked:
    after = ends if node.least == 0 else _NOWHERE
    reached: frozenset[str] = frozenset()
    # Four ways to end: after as many rounds nothing new can come.
    for round_number in range(1, min(node.most, node.least + 4) + 1):
        ends, marks = _walk(node.part, ends, ignore_case, joints)
        reached |= marks
        after |= ends if round_number >= node.least else _NOWHERE
    return after, reached
