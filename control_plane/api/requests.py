"""What happens around every request: its id, the limit of its body, its log line and its metrics."""

import asyncio
import re
import secrets
import time

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from control_plane import logs
from control_plane.api.bodies import MAX_BODY_BYTES
from control_plane.api.problems import problem
from control_plane.errors import TooLarge, TooSlow
from control_plane.ports import Meter

BODY_SECONDS = 30.0
_WORDS = f"the body is above {MAX_BODY_BYTES} bytes; nothing this API takes is larger"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class AroundRequests:
    """Plain ASGI: it sees the request before the framework does."""

    def __init__(self, app: ASGIApp, meter: Meter) -> None:
        self._app = app
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        request_id = _request_id(scope)
        scope["request_id"] = request_id
        status = 500

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            limit = _BodyLimit(receive)
            if limit.is_announced_too_large(scope):
                await _too_large(scope, receive, send_with_id)
            else:
                await self._app(scope, limit, send_with_id)
        finally:
            self._note(scope, status, time.monotonic() - started)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "unmatched")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._meter.request(method=method, route=route, status=status, seconds=seconds)
        logs.get().info(
            logs.REQUEST_DONE,
            method=method,
            route=route,
            status=status,
            seconds=round(seconds, 4),
            request_id=scope["request_id"],
            actor=scope.get("actor"),
        )


_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"})


class _BodyLimit:
    """Counts what is received, and how long it takes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._received_bytes = 0
        self._ends: float | None = None
        self._is_whole = False

    @staticmethod
    def is_announced_too_large(scope: Scope) -> bool:
        announced = dict(scope["headers"]).get(b"content-length", b"")
        return announced.isdigit() and (len(announced) > 12 or int(announced) > MAX_BODY_BYTES)

    async def __call__(self) -> Message:
        message = await self._receive() if self._is_whole else await self._receive_in_time()
        self._is_whole = not message.get("more_body", False)
        self._received_bytes += len(message.get("body", b""))
        if self._received_bytes > MAX_BODY_BYTES:
            raise TooLarge(_WORDS)
        return message

    async def _receive_in_time(self) -> Message:
        """A piece of the body; what comes after it, the client's leaving, may take its time."""
        self._ends = self._ends or asyncio.get_running_loop().time() + BODY_SECONDS
        try:
            async with asyncio.timeout_at(self._ends):
                return await self._receive()
        except TimeoutError:
            raise TooSlow(f"the body was not whole after {BODY_SECONDS:g} s; send it faster") from None


async def _too_large(scope: Scope, receive: Receive, send: Send) -> None:
    # The connection stays: it drops the rest of the body for a while, so that the answer is read and not cut off.
    answer = problem(Request(scope), 413, "too-large", "The body is too large", _WORDS)
    await answer(scope, receive, send)


def _request_id(scope: Scope) -> str:
    given = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
