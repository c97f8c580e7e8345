"""Where the strings of a JSON text stand in its bytes, so that one can be changed without touching another byte."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from gateway.errors import GatewayError

Path = tuple[str | int, ...]
MAX_DEPTH = 200
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|\[[-+0-9.eE,\s]*\]|[{}\[\],:]|[^\s"{}\[\],:]+', re.DOTALL)


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
    """Every value of a valid JSON text and every member's name, containers after what they contain.

    A list of nothing but numbers is one value: there may be a million of them in an embedding.
    A member that is named twice is refused: what a client reads would not be what was filtered.
    """
    walk = _Walk()
    for token in _TOKEN.finditer(data):
        found = walk.step(token[0], token.start(), token.end())
        if found is not None:
            yield found


class _Walk:
    __slots__ = ("_is_key", "_path", "_seen", "_starts")

    def __init__(self) -> None:
        self._path: list[str | int] = []
        self._seen: list[set[str] | None] = []
        self._starts: list[int] = []
        self._is_key = False

    def step(self, token: bytes, start: int, end: int) -> Span | None:
        first = token[:1]
        if token in (b"{", b"["):
            self._open(start, is_object=first == b"{")
            return None
        if first in b"}]":
            return self._close(end)
        if first == b",":
            self._next()
            return None
        if first == b":":
            self._is_key = False
            return None
        if self._is_key:
            self._name(decoded(token))
            return Span(tuple(self._path), start, end, is_string=False, is_name=True)
        return Span(tuple(self._path), start, end, is_string=first == b'"')

    def _open(self, start: int, *, is_object: bool) -> None:
        if len(self._path) >= MAX_DEPTH:
            raise UnreadableAnswer(f"the answer is nested deeper than {MAX_DEPTH}")
        self._starts.append(start)
        self._seen.append(set() if is_object else None)
        self._path.append("" if is_object else 0)
        self._is_key = is_object

    def _close(self, end: int) -> Span:
        self._path.pop()
        self._seen.pop()
        self._is_key = False
        return Span(tuple(self._path), self._starts.pop(), end, is_string=False)

    def _next(self) -> None:
        last = self._path[-1]
        if isinstance(last, int):
            self._path[-1] = last + 1
        else:
            self._is_key = True

    def _name(self, key: str) -> None:
        names = self._seen[-1]
        if names is not None:
            if key in names:
                raise UnreadableAnswer("a member of an object in the answer is named twice")
            names.add(key)
        self._path[-1] = key
