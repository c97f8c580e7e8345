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
    options = _asked_for_usage(document) if operation in _ASKED_FOR else None
    if options is not None:
        members["stream_options"] = options
    if max_output_tokens is not None and operation in _BOUND_FIELDS:
        members[_BOUND_FIELDS[operation]] = max_output_tokens
    return RequestEdits(_edits(body, document, members), options is not None)


def _asked_for_usage(document: Mapping[str, object]) -> dict[str, object] | None:
    """The options of a stream with the question for its usage; ``None`` = it is asked already, or no stream."""
    if document.get("stream") is not True:
        return None
    stated = document.get("stream_options")
    options = dict(stated) if isinstance(stated, Mapping) else {}
    return None if options.get("include_usage") is True else {**options, "include_usage": True}


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
