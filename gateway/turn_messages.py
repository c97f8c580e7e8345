"""What a client says on a chat's WebSocket: a turn, which is the body of a chat completion, or that one is cancelled.

Pure. Whatever is wrong with a turn is told by the decision that it goes to, as to every other request; here is only
seen to it that the answer is a stream.
"""

import json
from dataclasses import dataclass, field

from gateway.refusals import Reason, error_body
from gateway.request_document import BadDocument, parse_document

DONE = "[DONE]"
"""The last message of each turn, however it ended."""
_MAX_CANCEL_BYTES = 256
_STREAM = b'"stream":true'


@dataclass(frozen=True, slots=True)
class Turn:
    """One request, as it goes to the public path of chats."""

    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WrongTurn:
    """One that can't be streamed, and what its client is told."""

    message: str = field(repr=False)


class Cancel:
    """The running turn is to end."""


def said(text: str) -> Turn | WrongTurn | Cancel:
    """What a message means."""
    body = text.encode()
    try:
        document = parse_document(body)
    except BadDocument:
        return Turn(body)  # the decision says what is wrong with it
    if len(body) <= _MAX_CANCEL_BYTES and document == {"type": "cancel"}:
        return Cancel()
    if "stream" in document:
        return Turn(body) if document["stream"] is True else _not_streamed()
    start = body.index(b"{") + 1
    return Turn(body[:start] + _STREAM + (b"," if document else b"") + body[start:])


def error_message(status: int, body: bytes, retry_after: str | None = None) -> str:
    """An error of the gateway or an engine as a message: OpenAI's object, with what else stands in an answer's head."""
    told = _error_of(body) or json.loads(error_body(status, "The request failed.", code="failed"))
    told["status"] = status
    if retry_after is not None:
        told["retry_after"] = retry_after
    return json.dumps(told)


def failure(status: int, reason: str, text: str) -> str:
    """An error of this connection's own."""
    return error_message(status, error_body(status, text, code=reason))


def _not_streamed() -> WrongTurn:
    text = "Every turn on this connection is streamed: leave the field 'stream' out, or send true."
    body = error_body(400, text, code=Reason.BAD_FIELD.value, param="stream")
    return WrongTurn(error_message(400, body))


def _error_of(body: bytes) -> dict[str, object] | None:
    try:
        told: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return {"error": told["error"]} if isinstance(told, dict) and isinstance(told.get("error"), dict) else None
