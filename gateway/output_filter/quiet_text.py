"""Works out which plain words and marks no pattern can grow from, so that prose is not searched at all."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import assert_never

from gateway.output_filter.linear_regex import LinearRegex
from gateway.output_filter.pattern_tree import Chain, Chars, Choice, Edge, Node, Repeat, least_width

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ASCII = "".join(map(chr, range(128)))
_MARKS = " \n\t,.;:!?\"'()[]{}*#`/=|<>-"


def loud_text(patterns: Iterable[tuple[Node, bool]]) -> str:
    """A pattern of what makes a text worth searching.

    Where it matches nothing, the text is letters and marks, no value is in it, and only its last letters can become
    one. Each pattern comes with whether it ignores case.
    """
    patterns = list(patterns)
    marks = [mark for mark in _MARKS if not any(_reaches(node, mark, fold) for node, fold in patterns)]
    runs = [run for node, fold in patterns if (run := _letters_width(node, fold)) is not None]
    long_word = f"|[A-Za-z]{{{max(1, min(runs))}}}" if runs else ""
    return f"[^A-Za-z{re.escape(''.join(marks))}]{long_word}"


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


def _reaches(node: Node, mark: str, ignore_case: bool) -> bool:
    """Whether letters, or nothing, and then the mark can begin a match."""
    match node:
        case Chars(text):
            return mark in ascii_members(text, ignore_case)
        case Edge():
            return False
        case Chain(parts):
            return _chain_reaches(parts, mark, ignore_case)
        case Choice(options):
            return any(_reaches(option, mark, ignore_case) for option in options)
        case Repeat(part, _, most):
            return most > 0 and _reaches(part, mark, ignore_case)
        case _:
            assert_never(node)


def _chain_reaches(parts: Sequence[Node], mark: str, ignore_case: bool) -> bool:
    for part in parts:
        if _reaches(part, mark, ignore_case):
            return True
        if _letters_width(part, ignore_case) is None:
            return False
    return False
