"""The wire formats that stay close to OpenAI's: SGLang, TensorRT-LLM and LMDeploy.

Read from their sources, not captured; the fields that differ between the three stand in one `Style` each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.answer import Choice, Delta, Head, Json, Timing, Usage, finish_reason, token_logprobs
from simulator.api_errors import ApiError
from simulator.composition import Piece
from simulator.generation_request import Endpoint
from simulator.identifiers import fresh_id
from simulator.settings import Dialect, EngineSettings


@dataclass(frozen=True, slots=True)
class Style:
    """What one engine writes besides the common fields."""

    owned_by: str
    message: Mapping[str, Any]
    chat_choice: Mapping[str, Any]
    text_choice: Mapping[str, Any]
    body: Mapping[str, Any]
    usage: Mapping[str, Any]
    stop_field: str | None
    streams_tersely: bool = False
    """SGLang's way: the finish reason comes in a chunk of its own, and text chunks leave nulls out."""


_STYLES: Mapping[Dialect, Style] = {
    Dialect.SGLANG: Style(
        owned_by="sglang",
        message={"reasoning_content": None},
        chat_choice={},
        text_choice={},
        body={"metadata": None},
        usage={"prompt_tokens_details": None, "reasoning_tokens": 0, "completion_tokens_details": None},
        stop_field="matched_stop",
        streams_tersely=True,
    ),
    Dialect.TENSORRT_LLM: Style(
        owned_by="tensorrt_llm",
        message={},
        chat_choice={},
        text_choice={"token_ids": None},
        body={},
        usage={"prompt_tokens_details": None},
        stop_field="stop_reason",
    ),
    Dialect.LMDEPLOY: Style(
        owned_by="lmdeploy",
        message={"gen_tokens": None, "reasoning_content": None},
        chat_choice={},
        text_choice={"gen_tokens": None},
        body={},
        usage={},
        stop_field=None,
    ),
}


class PlainWire:
    """Writes what the engine of one style writes."""

    opens_all_choices_at_once = False

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._style = _STYLES[dialect]

    def chat(self, head: Head, choices: Sequence[Choice], usage: Usage, timing: Timing | None) -> Json:
        """Return the body of a complete chat."""
        body = {**_base(head, "chat.completion"), "choices": [self._chat_choice(head, choice) for choice in choices]}
        return {**body, "usage": self._usage(head, usage), **self._style.body}

    def completion(self, head: Head, choices: Sequence[Choice], usage: Usage, timing: Timing | None) -> Json:
        """Return the body of a complete completion."""
        shown = [
            {"index": choice.index, "text": choice.text, **self._text_end(choice.last, is_whole=True)}
            for choice in choices
        ]
        body = {**_base(head, "text_completion"), "choices": shown}
        return {**body, "usage": self._usage(head, usage), **self._style.body}

    def opening(self, head: Head, index: int, usage: Usage) -> Json | None:
        """Return the chunk with the role; completions have none."""
        if head.request.endpoint is Endpoint.COMPLETION:
            return None
        return self._chat_chunk(head, index, {"role": "assistant", "content": ""}, None, None, usage)

    def chunks(self, head: Head, delta: Delta) -> Sequence[Json]:
        """Return the chunks of a token: its text, and the finish reason where that comes alone."""
        piece, index, usage = delta.piece, delta.index, delta.usage
        if head.request.endpoint is Endpoint.COMPLETION:
            choice = {"index": index, "text": piece.text, **self._text_end(piece, is_whole=False)}
            return (self._chunk(head, "text_completion", choice, usage),)
        content: Json = {"role": None, "content": piece.text}
        if head.request.tool:
            content = {"role": None, "content": None, "tool_calls": [_tool_delta(head, delta)]}
        if not (self._style.streams_tersely and piece.finish):
            return (self._chat_chunk(head, index, content, piece, piece, usage),)
        ending = self._chat_chunk(head, index, {"role": None, "content": None}, piece, None, usage)
        if piece.is_end_token:
            return (ending,)
        return (self._chat_chunk(head, index, content, None, piece, usage), ending)

    def closing(self, head: Head, usage: Usage, timing: Timing | None) -> Json:
        """Return the usage chunk."""
        kind = "chat.completion.chunk" if head.request.endpoint is Endpoint.CHAT else "text_completion"
        return {**_base(head, kind), "choices": [], "usage": self._usage(head, usage)}

    def error(self, error: ApiError) -> Json:
        """Return the flat error object."""
        return {
            "object": "error",
            "message": error.message,
            "type": error.kind,
            "param": error.param,
            "code": error.status,
        }

    def busy(self) -> ApiError:
        """Return the 503 of a full queue."""
        return ApiError(503, "503", "The request queue is full.")

    def models(self, settings: EngineSettings, started: int) -> Json:
        """Return the served models and their adapters."""
        names = settings.api.served_names + settings.api.adapters
        shown = [
            {"id": name, "object": "model", "created": started, "owned_by": self._style.owned_by} for name in names
        ]
        if self._dialect is not Dialect.TENSORRT_LLM:
            for name, model in zip(names, shown, strict=True):
                model.update({"root": name, "parent": None})
        if self._dialect is Dialect.SGLANG:
            for model in shown:
                model["max_model_len"] = settings.limits.max_model_len
        return {"object": "list", "data": shown}

    def _usage(self, head: Head, usage: Usage) -> Json:
        counts: Json = {
            "prompt_tokens": usage.prompt,
            "total_tokens": usage.prompt + usage.completion,
            "completion_tokens": usage.completion,
            **self._style.usage,
        }
        if "prompt_tokens_details" in counts and head.settings.api.reports_cached_tokens:
            counts["prompt_tokens_details"] = {"cached_tokens": usage.cached}
        return counts

    def _stop(self, piece: Piece | None) -> Json:
        return {self._style.stop_field: piece.stop_text if piece else None} if self._style.stop_field else {}

    def _chat_choice(self, head: Head, choice: Choice) -> Json:
        tool, alternatives = head.request.tool, head.request.top_logprobs
        message: Json = {"role": "assistant", "content": None if tool else choice.text, **self._style.message}
        if tool:
            function = {"name": tool.name, "arguments": choice.text}
            message["tool_calls"] = [{"id": fresh_id("call_"), "index": 0, "type": "function", "function": function}]
        return {
            "index": choice.index,
            "message": message,
            "logprobs": None if alternatives is None else token_logprobs(choice.pieces, alternatives),
            "finish_reason": self._reason(head, choice.last),
            **self._stop(choice.last),
            **self._style.chat_choice,
        }

    def _text_end(self, piece: Piece, *, is_whole: bool) -> Json:
        extra = self._style.text_choice if is_whole or self._dialect is not Dialect.SGLANG else {}
        return {"logprobs": None, "finish_reason": piece.finish, **self._stop(piece), **extra}

    def _chat_chunk(
        self, head: Head, index: int, content: Json, ending: Piece | None, said: Piece | None, usage: Usage
    ) -> Json:
        alternatives = head.request.top_logprobs
        shows = alternatives is not None and said is not None and not said.is_end_token
        is_terse = self._style.streams_tersely and "tool_calls" not in content
        if is_terse:
            content = {name: value for name, value in content.items() if value is not None}
        choice = {
            "index": index,
            "delta": {**self._style.message, **content},
            "logprobs": token_logprobs([said], alternatives or 0) if shows and said else None,
            "finish_reason": self._reason(head, ending) if ending else None,
            **self._stop(ending),
        }
        chunk = self._chunk(head, "chat.completion.chunk", choice, usage)
        if is_terse and chunk["usage"] is None:
            del chunk["usage"]
        return chunk

    def _reason(self, head: Head, piece: Piece) -> str | None:
        return finish_reason(head.request, piece, tells_named_tools=self._dialect is Dialect.SGLANG)

    def _chunk(self, head: Head, kind: str, choice: Json, usage: Usage) -> Json:
        shown = self._usage(head, usage) if head.request.usage_in_every_chunk else None
        return {**_base(head, kind), "choices": [choice], "usage": shown}


def _base(head: Head, kind: str) -> Json:
    return {"id": head.answer_id, "object": kind, "created": head.created, "model": head.request.model}


def _tool_delta(head: Head, delta: Delta) -> Json:
    named = head.request.tool.name if delta.is_first and head.request.tool else None
    function = {"name": named, "arguments": delta.piece.text}
    return {"id": fresh_id("call_") if named else None, "index": 0, "type": "function", "function": function}
