"""ASGI requests and responses, just as much as the simulated engines need."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Scope = MutableMapping[str, Any]

MOST_BODY_BYTES = 64 << 20


class BodyTooLargeError(Exception):
    """The request body passes the limit."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: one body, or a stream of pieces."""

    status: int
    body: bytes = b""
    content_type: str | None = "application/json"
    stream: AsyncIterator[bytes] | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(slots=True)
class Request:
    """One HTTP request."""

    scope: Scope
    receive: Receive

    @property
    def method(self) -> str:
        """Return the method."""
        return str(self.scope["method"])

    @property
    def path(self) -> str:
        """Return the path."""
        return str(self.scope["path"])

    def header(self, name: bytes) -> str | None:
        """Return the first value of a header; `None` when absent."""
        found: Mapping[bytes, bytes] = dict(reversed(self.scope["headers"]))
        value = found.get(name)
        return None if value is None else value.decode("latin-1")

    async def body(self) -> bytes:
        """Read the whole body."""
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > MOST_BODY_BYTES:
                raise BodyTooLargeError
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    @contextlib.asynccontextmanager
    async def watched(self, when_gone: Callable[[], None]) -> AsyncIterator[None]:
        """Inside the block, call `when_gone` as soon as the client closes the connection."""
        task = asyncio.create_task(self._wait_until_gone(when_gone))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _wait_until_gone(self, when_gone: Callable[[], None]) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass
        when_gone()


Handler = Callable[[Request], Awaitable[Reply]]


async def send_reply(reply: Reply, send: Send) -> int:
    """Send a response and return how many body bytes a content-length announced."""
    headers = [] if reply.stream is not None else [(b"content-length", str(len(reply.body)).encode())]
    if reply.content_type is not None and (reply.body or reply.stream is not None):
        headers.append((b"content-type", reply.content_type.encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": [*headers, *reply.headers]})
    if reply.stream is None:
        await send({"type": "http.response.body", "body": reply.body})
        return len(reply.body)
    async for piece in reply.stream:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    return 0
