"""OpenAI's responses as vLLM 0.32.0 writes them: captured for texts, read from its sources for tools."""

from collections.abc import Iterator, Sequence

from simulator.answer import Choice, Head, Json, Usage
from simulator.composition import Finish, Piece
from simulator.identifiers import fresh_id
from simulator.sse import named_event


def response_body(head: Head, choices: Sequence[Choice], usage: Usage) -> Json:
    """Return a whole response."""
    return _whole(head, choices[0], usage, _item(head, _item_id(head), choices[0].text, "completed"))


class ResponseScript:
    """The events of one streamed response."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._item_id = _item_id(head)
        self._number = 0
        self._is_tool = head.request.tool is not None
        self._kind = "function_call_arguments" if self._is_tool else "output_text"

    def opening(self, usage: Usage) -> Iterator[bytes]:
        """Yield what comes before the first piece."""
        for state in ("created", "in_progress"):
            yield self._event(f"response.{state}", response=_frame(self._head, "in_progress", [], None))
        item = _item(self._head, self._item_id, None, "in_progress")
        yield self._event("response.output_item.added", item=item, output_index=0)
        if not self._is_tool:
            yield self._event("response.content_part.added", part=_text_part("", []), **self._place())

    def piece(self, piece: Piece) -> Iterator[bytes]:
        """Yield one piece."""
        if piece.text:
            yield self._event(f"response.{self._kind}.delta", delta=piece.text, **self._text_place())

    def closing(self, choice: Choice, usage: Usage) -> Iterator[bytes]:
        """Yield what comes after the last piece."""
        done = {"arguments": choice.text} if self._is_tool else {"text": choice.text}
        yield self._event(f"response.{self._kind}.done", **done, **self._text_place())
        if not self._is_tool:
            yield self._event("response.content_part.done", part=_text_part(choice.text, None), **self._place())
        item = _item(self._head, self._item_id, choice.text, "completed")
        yield self._event("response.output_item.done", item=item, output_index=0)
        yield self._event("response.completed", response=_whole(self._head, choice, usage, item))

    def _place(self) -> Json:
        return {"content_index": 0, "item_id": self._item_id, "output_index": 0}

    def _text_place(self) -> Json:
        if self._is_tool:
            return {"item_id": self._item_id, "output_index": 0}
        return {**self._place(), "logprobs": []}

    def _event(self, kind: str, **members: object) -> bytes:
        chunk = dict(sorted({**members, "sequence_number": self._number}.items()))
        self._number += 1
        return named_event(kind, {**chunk, "type": kind})


def _whole(head: Head, choice: Choice, usage: Usage, item: Json) -> Json:
    is_cut = choice.last.finish is Finish.LENGTH
    reason = {"reason": "max_output_tokens"} if is_cut else None
    counts = {
        "input_tokens": usage.prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cached if head.settings.api.reports_cached_tokens else 0,
            "cache_write_tokens": 0,
            "input_tokens_per_turn": [],
            "cached_tokens_per_turn": [],
        },
        "output_tokens": usage.completion,
        "output_tokens_details": {
            "reasoning_tokens": 0,
            "tool_output_tokens": 0,
            "output_tokens_per_turn": [],
            "tool_output_tokens_per_turn": [],
        },
        "total_tokens": usage.prompt + usage.completion,
    }
    frame = _frame(head, "incomplete" if is_cut else "completed", [item], counts)
    return {**frame, "incomplete_details": reason}


def _frame(head: Head, status: str, output: Sequence[Json], counts: Json | None) -> Json:
    request = head.request
    return {
        "id": head.answer_id,
        "created_at": head.created,
        "incomplete_details": None,
        "instructions": None,
        "metadata": None,
        "model": request.model,
        "object": "response",
        "output": list(output),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "none" if request.tool is None else "auto",
        "tools": [],
        "top_p": 1.0,
        "background": False,
        "max_output_tokens": request.max_tokens,
        "max_tool_calls": None,
        "previous_response_id": None,
        "prompt": None,
        "reasoning": None,
        "service_tier": "auto",
        "status": status,
        "text": None,
        "top_logprobs": None,
        "truncation": "disabled",
        "usage": counts,
        "user": None,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "input_messages": None,
        "output_messages": None,
    }


def _item_id(head: Head) -> str:
    return fresh_id("msg_" if head.request.tool is None else "fc_")


def _item(head: Head, item_id: str, text: str | None, status: str) -> Json:
    tool = head.request.tool
    if tool is not None:
        call = {"arguments": text or "", "call_id": item_id.replace("fc_", "call_"), "name": tool.name}
        return {**call, "type": "function_call", "id": item_id, "status": status}
    content = [] if text is None else [_text_part(text, None)]
    return {
        "id": item_id,
        "content": content,
        "role": "assistant",
        "status": status,
        "type": "message",
        "phase": None,
    }


def _text_part(text: str, logprobs: object) -> Json:
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}
