"""Patterns that match bounded text: their width, and the pattern of everything that may still become a match."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set, written as RE2 writes it."""

    source: str


@dataclass(frozen=True, slots=True)
class Edge:
    """A place between characters, such as a word's edge."""

    source: str


@dataclass(frozen=True, slots=True)
class Chain:
    """One after the other."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same again, a bounded number of times."""

    part: "Node"
    least: int
    most: int


Node = Chars | Edge | Chain | Choice | Repeat


def source(node: Node) -> str:
    """The pattern in RE2's syntax, without capturing groups."""
    match node:
        case Chars(text) | Edge(text):
            return text
        case Chain(parts):
            return "(?:" + "".join(map(source, parts)) + ")"
        case Choice(options):
            return "(?:" + "|".join(map(source, options)) + ")"
        case Repeat(part, least, most):
            once = f"(?:{source(part)})" if isinstance(part, Repeat | Edge) else source(part)
            return f"{once}{{{least},{most}}}" if most else ""
        case _:
            assert_never(node)


def least_width(node: Node) -> int:
    """The fewest characters that match."""
    return _widths(node)[0]


def width(node: Node) -> int:
    """The most characters that match."""
    return _widths(node)[1]


def _widths(node: Node) -> tuple[int, int]:
    """The fewest and the most characters that match."""
    match node:
        case Chars():
            return 1, 1
        case Edge():
            return 0, 0
        case Chain(parts):
            found = [_widths(part) for part in parts]
            return sum(least for least, _ in found), sum(most for _, most in found)
        case Choice(options):
            found = [_widths(option) for option in options]
            return min(least for least, _ in found), max(most for _, most in found)
        case Repeat(part, least, most):
            fewest, longest = _widths(part)
            return least * fewest, most * longest
        case _:
            assert_never(node)


def beginnings(node: Node) -> str:
    """A pattern for every text that can be continued to a match, the empty one and whole matches among them.

    Edges are left out: whether a word ends is known only with the next character.
    """
    match node:
        case Chars(text):
            return f"{text}?"
        case Edge():
            return ""
        case Chain(parts):
            return _chain_beginnings(parts)
        case Choice(options):
            return "(?:" + "|".join(map(beginnings, options)) + ")"
        case Repeat(part, _, most):
            return _repeat_beginnings(part, most)
        case _:
            assert_never(node)


def _chain_beginnings(parts: Sequence[Node]) -> str:
    rest = ""
    for part in reversed([part for part in parts if not isinstance(part, Edge)]):
        if not rest:
            rest = beginnings(part)
        elif isinstance(part, Chars):
            rest = f"(?:{part.source}{rest})?"
        else:
            rest = f"(?:{beginnings(part)}|{source(part)}{rest})"
    return rest


def _repeat_beginnings(part: Node, most: int) -> str:
    if isinstance(part, Chars):
        return f"{part.source}{{0,{most}}}"
    return f"(?:{source(Repeat(part, 0, most - 1))}{beginnings(part)})" if most else ""
