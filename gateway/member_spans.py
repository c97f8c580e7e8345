"""Where the members of a JSON object stand in its text, so that one can be replaced without touching the others."""

import json
import re
from dataclasses import dataclass

_TEXT = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_OUTSIDE = re.compile(_TEXT + rb"|[{}\[\],:]", re.DOTALL)
_INSIDE = re.compile(_TEXT + rb"|[{}\[\]]", re.DOTALL)
"""Commas and colons inside of a value don't matter, and a list of token ids has a hundred thousand."""


@dataclass(frozen=True, slots=True)
class MemberSpan:
    """The bytes of one member's value, without the blanks around it."""

    start: int
    end: int


def member_spans(body: bytes) -> dict[str, MemberSpan]:
    """Name -> the span of its value, for the members of the one object that a body is.

    The body must be a valid JSON object: what isn't one gives spans that mean nothing.
    """
    found: dict[str, MemberSpan] = {}
    name: str | None = None
    last_text = b""
    start = position = body.index(b"{") + 1
    while match := _OUTSIDE.search(body, position):
        token, position = match.group(), match.end()
        if token in {b"{", b"["}:
            position = _after_value(body, position)
        elif token == b":":
            name, start = json.loads(last_text), position
        elif token in {b",", b"}"}:
            if name is not None:
                found[name] = _trimmed(body, start, match.start())
            name = None
        else:
            last_text = token
    return found


def closing_brace(body: bytes) -> int:
    """The offset of the brace that ends the object."""
    return body.rindex(b"}")


def _after_value(body: bytes, position: int) -> int:
    """The offset after the list or object that was just opened."""
    depth = 1
    while depth and (match := _INSIDE.search(body, position)):
        position = match.end()
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(match.group(), 0)
    return position


def _trimmed(body: bytes, start: int, end: int) -> MemberSpan:
    value = body[start:end]
    return MemberSpan(start + len(value) - len(value.lstrip()), end - len(value) + len(value.rstrip()))
