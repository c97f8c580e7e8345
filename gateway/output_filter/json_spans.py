"""Where the strings of a JSON text stand in its bytes, so that one can be changed without touching another byte."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from gateway.errors import GatewayError

Path = tuple[str | int, ...]
MAX_DEPTH = 200
_TOKEN = re.compile(
    rb'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|(\[[-+0-9.eE,\s]*\]|[-0-9][^\s"{}\[\],:]*)|([{\[])|([}\]])|(,)', re.DOTALL
)
_STRING, _NAME, _NUMBERS, _OPEN, _CLOSE, _COMMA = range(1, 7)
"""The groups of a token."""


class UnreadableAnswer(GatewayError):
    """An answer is not of a form that can be filtered; the message does not quote it."""


class Span(NamedTuple):
    """A value in a JSON text, and where it stands."""

    path: Path
    start: int
    end: int
    is_string: bool
    is_name: bool = False
    """It names the member that its path ends with."""

    def __repr__(self) -> str:
        """Nothing of what an answer says."""
        return "Span(...)"


def parse(data: bytes) -> object:
    """The JSON document; ValueError where it is none. Bytes that are not UTF-8 are kept as lone surrogates."""
    try:
        document: object = json.loads(data.decode("utf-8", "surrogateescape"))
    except RecursionError:
        raise UnreadableAnswer("the answer is nested too deeply to be filtered") from None
    return document


def decoded(literal: bytes) -> str:
    """The text of a string's literal in a valid JSON text."""
    if b"\\" not in literal:
        return literal[1:-1].decode("utf-8", "surrogateescape")
    return decoded_strictly(literal)


def decoded_strictly(literal: bytes) -> str:
    """The text of a string's literal; ValueError where it is no literal of one string."""
    return str(json.loads(literal.decode("utf-8", "surrogateescape")))


def encoded(text: str, instead_of: bytes) -> bytes:
    """A string's literal, with characters written as they are where that is how the one before did it."""
    if instead_of.isascii():
        return json.dumps(text).encode()
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogateescape")


def spans(data: bytes) -> Iterator[Span]:
    """Every value of a valid JSON text but ``true``, ``false`` and ``null``, and every member's name.

    Containers come after what they contain.

    A list of nothing but numbers is one value: there may be a million of them in an embedding.
    A member that is named twice is refused: what a client reads would not be what was filtered.
    """
    path: list[str | int] = []
    nested: list[tuple[int, set[str]]] = []
    """Where each container around begins, and the names in it."""
    for token in _TOKEN.finditer(data):
        kind = token.lastindex
        if kind in (_STRING, _NUMBERS):
            yield Span(tuple(path), token.start(), token.end(), kind == _STRING)
        elif kind == _NAME:
            path[-1] = _unique(decoded(token[_STRING]), nested[-1][1])
            yield Span(tuple(path), token.start(), token.end(_STRING), is_string=False, is_name=True)
        elif kind == _OPEN:
            _refuse_deep(path)
            nested.append((token.start(), set()))
            path.append("" if token[0] == b"{" else 0)
        elif kind == _CLOSE:
            path.pop()
            yield Span(tuple(path), nested.pop()[0], token.end(), is_string=False)
        elif kind == _COMMA:
            _count_on(path)


def _unique(name: str, names: set[str]) -> str:
    if name in names:
        raise UnreadableAnswer("a member of an object in the answer is named twice")
    names.add(name)
    return name


def _refuse_deep(path: list[str | int]) -> None:
    if len(path) >= MAX_DEPTH:
        raise UnreadableAnswer(f"the answer is nested deeper than {MAX_DEPTH}")


def _count_on(path: list[str | int]) -> None:
    """The next element of a list; in an object a name follows."""
    last = path[-1]
    if isinstance(last, int):
        path[-1] = last + 1
