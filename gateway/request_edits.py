"""What a request gets that its client did not write: a question for usage, and a bound on its output."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from gateway.body_edits import Edit
from gateway.form_document import value_span
from gateway.member_spans import closing_brace, member_spans
from gateway.paths import Operation

_COMPACT = json.JSONEncoder(separators=(",", ":"))
_ASKED_FOR = frozenset({Operation.CHAT, Operation.COMPLETION})
"""Operations whose streams say what they took only when they are asked."""
_OPTIONS, _USAGE = "stream_options", "include_usage"


_BOUND_FIELDS = {
    Operation.CHAT: "max_tokens",
    Operation.COMPLETION: "max_tokens",
    Operation.RESPONSES: "max_output_tokens",
    Operation.MESSAGES: "max_tokens",
}
"""The field that bounds the output, by operation; the others write nothing that could be bounded."""


class RequestEdits(NamedTuple):
    """The edits of one body."""

    edits: tuple[Edit, ...]
    is_usage_injected: bool
    """Whether usage was asked for in the client's place, so that it must not see it."""


def request_edits(
    body: bytes,
    document: Mapping[str, object],
    operation: Operation,
    max_output_tokens: int | None,
    *,
    model: str | None = None,
    more: Mapping[str, object] | None = None,
) -> RequestEdits:
    """The edits of a request.

    ``max_output_tokens`` = what to write where it bounds nothing itself; ``model`` = the engine's name for what the
    request calls otherwise; ``more`` = other members that it gets.
    """
    if operation is Operation.TRANSCRIPTION:
        return RequestEdits(() if model is None else (Edit(*value_span(body, "model"), model.encode()),), False)
    members: dict[str, object] = {} if model is None else {"model": model}
    members |= more or {}
    asks = operation in _ASKED_FOR and _lacks_usage(document)
    own = document.get(_OPTIONS) if asks else None
    if asks and not isinstance(own, Mapping):
        members[_OPTIONS] = {_USAGE: True}
    if max_output_tokens is not None and operation in _BOUND_FIELDS:
        members[_BOUND_FIELDS[operation]] = max_output_tokens
    edits = _edits(body, document, members)
    return RequestEdits((*edits, _within(body, own)) if isinstance(own, Mapping) else edits, asks)


def _lacks_usage(document: Mapping[str, object]) -> bool:
    """Whether it is a stream that is not asked for its usage."""
    stated = document.get(_OPTIONS)
    is_asked = isinstance(stated, Mapping) and stated.get(_USAGE) is True
    return document.get("stream") is True and not is_asked


def _within(body: bytes, stated: Mapping[str, object]) -> Edit:
    """The question for usage among a client's own options, which stay as it wrote them."""
    span = member_spans(body)[_OPTIONS]
    if _USAGE not in stated:
        return Edit(span.start + 1, span.start + 1, b'"include_usage":true' + (b"," if stated else b""))
    inner = member_spans(body[span.start : span.end])[_USAGE]
    return Edit(span.start + inner.start, span.start + inner.end, b"true")


def _edits(body: bytes, document: Mapping[str, object], members: Mapping[str, object]) -> tuple[Edit, ...]:
    """A member that is there is replaced where it stands; the others go to the end of the object."""
    if not members:
        return ()
    there = members.keys() & document.keys()
    spans = member_spans(body) if there else {}
    edits = [Edit(spans[name].start, spans[name].end, _json(members[name])) for name in sorted(there)]
    added = b"".join(
        b',"%b":%b' % (name.encode(), _json(value)) for name, value in members.items() if name not in there
    )
    if added:
        end = closing_brace(body)
        edits.append(Edit(end, end, added))
    return tuple(edits)


def _json(value: object) -> bytes:
    return b"%d" % value if type(value) is int else _COMPACT.encode(value).encode()
