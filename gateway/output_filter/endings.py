"""How an answer ends that may not go on, in the form of its API."""

import json
from collections.abc import Iterable, Mapping

from gateway.output_filter.shapes import Api

CODE = "content_filter"


def blocked(api: Api, name: str, last: Mapping[str, object], open_choices: Iterable[int]) -> bytes:
    """The end of a stream before a value that is blocked; ``last`` is an event of the stream."""
    if api is not Api.COMPLETIONS:
        return _error(api, f"The answer was ended by the output filter ({name}).", CODE)
    kept = {name: last[name] for name in ("id", "object", "created", "model") if name in last}
    rest: dict[str, object] = {"text": ""} if last.get("object") == "text_completion" else {"delta": {}}
    choices = [{"index": index, **rest, "finish_reason": CODE} for index in open_choices]
    return _event(kept | {"choices": choices}) + b"data: [DONE]\n\n"


def failed(api: Api) -> bytes:
    """The end of a stream that can't be filtered any further."""
    return _error(api, "The output filter could not go on, so the answer ends here.", "output_filter_failed")


def error_body(message: str, code: str) -> bytes:
    """An error in place of a whole answer, in OpenAI's form."""
    return _json({"error": {"message": message, "type": "server_error", "param": None, "code": code}})


def _error(api: Api, message: str, code: str) -> bytes:
    if api is Api.RESPONSES:
        return _event({"type": "error", "code": code, "message": message, "param": None}, "error")
    if api is Api.MESSAGES:
        return _event({"type": "error", "error": {"type": "api_error", "message": message}}, "error")
    return b"data: " + error_body(message, code) + b"\n\ndata: [DONE]\n\n"


def _event(document: Mapping[str, object], name: str = "") -> bytes:
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + _json(document) + b"\n\n"


def _json(document: object) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
