"""Anthropic's messages as vLLM 0.32.0 writes them: captured for texts, read from its sources for tools."""

import json
from collections.abc import Iterator, Sequence

from simulator.answer import Choice, Head, Json, Usage
from simulator.api_errors import ApiError
from simulator.composition import Finish, Piece
from simulator.identifiers import fresh_id
from simulator.sse import named_event


def message_body(head: Head, choices: Sequence[Choice], usage: Usage) -> Json:
    """Return a whole message."""
    choice = choices[0]
    return {
        "id": head.answer_id,
        "type": "message",
        "role": "assistant",
        "content": [_block(head, choice)],
        "model": head.request.model,
        "stop_reason": _stop_reason(head, choice.last),
        "usage": _final_counts(head, usage),
    }


def message_error(error: ApiError) -> Json:
    """Return an error in Anthropic's form."""
    return {"type": "error", "error": {"type": error.kind, "message": error.message}}


class MessageScript:
    """The events of one streamed message."""

    def __init__(self, head: Head) -> None:
        self._head = head

    def opening(self, usage: Usage) -> Iterator[bytes]:
        """Yield what comes before the first piece."""
        message: Json = {
            "id": self._head.answer_id,
            "type": "message",
            "role": "assistant",
            "content": [],
            "model": self._head.request.model,
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _counts(usage),
        }
        yield _event({"type": "message_start", "message": message})
        tool = self._head.request.tool
        block = {"type": "text", "text": ""} if tool is None else _tool_block(tool.name, {})
        yield _event({"type": "content_block_start", "content_block": block, "index": 0})

    def piece(self, piece: Piece) -> Iterator[bytes]:
        """Yield one piece."""
        if not piece.text:
            return
        delta = {"type": "text_delta", "text": piece.text}
        if self._head.request.tool is not None:
            delta = {"type": "input_json_delta", "partial_json": piece.text}
        yield _event({"type": "content_block_delta", "delta": delta, "index": 0})

    def closing(self, choice: Choice, usage: Usage) -> Iterator[bytes]:
        """Yield what comes after the last piece."""
        yield _event({"type": "content_block_stop", "index": 0})
        delta = {"stop_reason": _stop_reason(self._head, choice.last), "stop_sequence": choice.last.stop_text}
        yield _event({"type": "message_delta", "delta": delta, "usage": _final_counts(self._head, usage)})
        yield _event({"type": "message_stop"})


def _event(chunk: Json) -> bytes:
    return named_event(str(chunk["type"]), chunk)


def _block(head: Head, choice: Choice) -> Json:
    tool = head.request.tool
    if tool is None:
        return {"type": "text", "text": choice.text}
    try:
        arguments = json.loads(choice.text)
    except ValueError:  # the answer was cut
        arguments = {}
    return _tool_block(tool.name, arguments)


def _tool_block(name: str, arguments: object) -> Json:
    return {"type": "tool_use", "id": fresh_id("toolu_"), "name": name, "input": arguments}


def _stop_reason(head: Head, last: Piece) -> str:
    if last.finish is Finish.LENGTH:
        return "max_tokens"
    if head.request.tool is not None:
        return "tool_use"
    return "end_turn" if last.stop_text is None else "stop_sequence"


def _counts(usage: Usage) -> Json:
    return {"input_tokens": usage.prompt, "output_tokens": usage.completion}


def _final_counts(head: Head, usage: Usage) -> Json:
    """An engine that tells of its cache takes what was read from it and written to it out of the input."""
    if not head.settings.api.reports_cached_tokens:
        return _counts(usage)
    written = usage.written(head.settings.cache)
    return {
        "input_tokens": usage.prompt - usage.cached - written,
        "output_tokens": usage.completion,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": usage.cached,
    }
