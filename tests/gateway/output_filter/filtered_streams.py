"""Streams of every API, written as engines write them, and what a client reads out of them."""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterable

from gateway.output_filter.channel import CompiledPolicy
from gateway.output_filter.stream_filter import StreamFilter
from gateway.sse import SseReader

HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1795965643, "model": "tiny"}


def line(document: object, name: str = "") -> bytes:
    """One event."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return (f"event: {name}\n".encode() if name else b"") + b"data: " + text + b"\n\n"


def delta(index: int, content: dict, finish: str | None = None) -> bytes:
    """A chunk of a chat."""
    choice = {"index": index, "delta": content, "logprobs": None, "finish_reason": finish, "token_ids": None}
    return line({**HEAD, "choices": [choice]})


def argument(index: int, tool: int, text: str) -> bytes:
    """A piece of a tool's arguments."""
    return delta(index, {"tool_calls": [{"index": tool, "function": {"arguments": text}}]})


USAGE = line({**HEAD, "choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 9, "total_tokens": 13}})
DONE = b"data: [DONE]\n\n"


def documents(stream: bytes) -> list[dict]:
    """The JSON of the events; whatever is not a whole event fails."""
    reader = SseReader()
    events = list(reader.feed(stream))
    assert reader.pending == b""
    return [json.loads(event.data) for event in events if event.data not in (b"", b"[DONE]")]


def chat_texts(stream: bytes) -> dict[tuple, str]:
    """The texts of a chat's choices and of their tools' arguments."""
    texts: dict[tuple, str] = defaultdict(str)
    for document in documents(stream):
        for choice in document.get("choices", ()):
            for name, value in choice.get("delta", {}).items():
                if name == "tool_calls":
                    for call in value:
                        texts[choice["index"], call["index"]] += call["function"].get("arguments", "")
                elif isinstance(value, str) and name != "role":
                    texts[choice["index"], name] += value
    return dict(texts)


def run_filter(policy: CompiledPolicy, chunks: Iterable[bytes], key: bytes = b"") -> tuple[bytes, StreamFilter]:
    """A whole stream through the filter."""
    growing = StreamFilter(policy, key)
    out = b"".join([growing.feed(chunk, 0.0) for chunk in chunks])
    return out + growing.close(0.0), growing


def cut(stream: bytes, places: Iterable[int]) -> list[bytes]:
    """The stream in chunks."""
    marks = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[a:b] for a, b in itertools.pairwise(marks)]
