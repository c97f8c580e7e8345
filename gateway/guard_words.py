"""What the guard itself says on a stream: comments that keep it alive, and an error after which nothing comes."""

import json

from gateway.error_forms import anthropic_body
from gateway.exchange import Headers
from gateway.paths import MESSAGES_PATH, RESPONSES_PATH
from gateway.refusals import Reason, error_body, error_type

KEEP_ALIVE = b": keep-alive\n\n"
STREAM_HEADERS: Headers = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
"""Of a stream that begins before its engine answers."""


def error_event(path: str, status: int, code: Reason | str, message: str) -> bytes:
    """An error as the last event of a stream, in the form of the API that was asked.

    OpenAI's clients raise on a member ``error`` of the data, Anthropic's on an event ``error``.
    """
    if path == MESSAGES_PATH:
        return b"event: error\ndata: " + anthropic_body(status, message) + b"\n\n"
    if path == RESPONSES_PATH:
        # OpenAI's own form, and the member on which its clients raise: a short answer must not look like a whole one.
        stated = {"message": message, "type": error_type(status), "param": None, "code": str(code)}
        told = {"type": "error", "code": str(code), "message": message, "param": None, "error": stated}
        return b"event: error\ndata: " + json.dumps(told).encode() + b"\n\n"
    return b"data: " + error_body(status, message, code=str(code)) + b"\n\n"
