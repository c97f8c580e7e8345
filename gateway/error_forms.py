"""Errors in the form of the API that was asked: OpenAI's everywhere, Anthropic's where messages are asked for."""

import json
from dataclasses import replace

from gateway.paths import COUNT_TOKENS_PATH, MESSAGES_PATH
from gateway.refusals import Refused, error_body

ANTHROPIC_PATHS = frozenset({MESSAGES_PATH, COUNT_TOKENS_PATH})
_ANTHROPIC = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}


def error_answer(path: str, status: int, message: str, *, code: str, param: str | None = None) -> bytes:
    """The body of an error at a path."""
    if path in ANTHROPIC_PATHS:
        return anthropic_body(status, message)
    return error_body(status, message, code=code, param=param)


def anthropic_body(status: int, message: str) -> bytes:
    """The JSON that Anthropic's clients turn into their own exceptions."""
    return json.dumps({"type": "error", "error": {"type": anthropic_type(status), "message": message}}).encode()


def anthropic_type(status: int) -> str:
    """Anthropic's word for the kind of error."""
    return _ANTHROPIC.get(status, "api_error" if status >= 500 else "invalid_request_error")


def in_form_of(refused: Refused, target: str) -> Refused:
    """A refusal in the words of the path that was asked."""
    if target.partition("?")[0] not in ANTHROPIC_PATHS:
        return refused
    return replace(refused, body=anthropic_body(refused.status, refused.message))
