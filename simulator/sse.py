"""Server-sent events as the engines frame them, and comments that keep an idle stream open."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def event(chunk: Mapping[str, Any]) -> bytes:
    """Return one event."""
    return b"data: " + json_bytes(chunk) + b"\n\n"


def named_event(name: str, chunk: Mapping[str, Any]) -> bytes:
    """Return one event with a name."""
    return f"event: {name}\n".encode() + event(chunk)


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Return compact JSON, not escaped beyond need."""
    return _COMPACT.encode(value).encode("utf-8", "replace")


async def with_keep_alive(events: AsyncIterator[bytes], idle_seconds: float | None) -> AsyncIterator[bytes]:
    """Pass events on; after `idle_seconds` without one, send a comment. `None` never sends one."""
    if idle_seconds is None:
        async for ready in events:
            yield ready
        return
    upcoming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=idle_seconds)
            if not done:
                yield KEEP_ALIVE
                continue
            found = upcoming.result()
            if found is None:
                return
            upcoming = asyncio.ensure_future(anext(events, None))
            yield found
    finally:
        upcoming.cancel()
