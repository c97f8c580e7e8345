"""Sends copies of requests to shadows: beside the client's request, never before it, and without anybody waiting.

A copy is charged to nobody and its answer is read and thrown away. When too many are on their way there are no more.
"""

import asyncio
from enum import StrEnum
from typing import Protocol

import structlog

from gateway.engine_connections import EngineConnections
from gateway.engine_message import message_for
from gateway.error_places import kind_and_place
from gateway.exchange import Headers
from gateway.hosted_keys import HostedKeyError
from gateway.http_protocol import HttpRequest
from gateway.mirror import Mirror, MirrorName
from gateway.targets import pause_of

MAX_SHADOWS = 64
MAX_SHADOW_BYTES = 32 * 1024 * 1024
"""Of all bodies of copies that are on their way."""
MAX_SECONDS = 600.0
"""For one copy, from its beginning to the end of its answer."""
_CLIENT_ERROR = 400
_ENGINE_ERROR = 500
_log = structlog.get_logger("gateway.shadows")


class Outcome(StrEnum):
    """What came of a copy; the value is a metric's label."""

    ANSWERED = "answered"
    REFUSED = "refused"
    """With a status of 400 or above."""
    LOST = "lost"
    LATE = "late"
    TOO_MANY = "too_many"
    """It was not sent."""


class ShadowMetrics(Protocol):
    """Whoever counts."""

    def mirrored(self, name: MirrorName, outcome: str, first_byte_seconds: float | None) -> None:
        """One copy is over."""


class _Unread:
    """Reads an answer for its status and its end alone."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.is_whole: asyncio.Future[bool] = loop.create_future()
        self.status = 0
        self.headers: Headers = ()
        self.first_byte_at: float | None = None

    def on_head(self, status: int, headers: Headers) -> None:
        """The answer begins."""
        self.status, self.headers = status, headers

    def on_piece(self, data: bytes) -> None:
        """Nobody reads it."""
        if self.first_byte_at is None:
            self.first_byte_at = asyncio.get_running_loop().time()

    def on_end(self) -> None:
        """It is whole."""
        if not self.is_whole.done():
            self.is_whole.set_result(True)

    def on_lost(self) -> None:
        """The engine broke off."""
        if not self.is_whole.done():
            self.is_whole.set_result(False)


class Shadows:
    """The copies of one worker."""

    def __init__(self, engines: EngineConnections, metrics: ShadowMetrics, *, limit: int = MAX_SHADOWS) -> None:
        self._engines = engines
        self._metrics = metrics
        self._limit = limit
        self._running: set[asyncio.Task[None]] = set()
        self._bytes = 0

    @property
    def running(self) -> int:
        """Copies on their way."""
        return len(self._running)

    def send(self, mirror: Mirror, request: HttpRequest) -> None:
        """Send a copy, unless there are too many."""
        if len(self._running) >= self._limit or self._bytes + len(request.body) > MAX_SHADOW_BYTES:
            self._metrics.mirrored(mirror.name, Outcome.TOO_MANY, None)
            return
        self._bytes += len(request.body)
        task = asyncio.get_running_loop().create_task(self._run(mirror, request))
        self._running.add(task)
        task.add_done_callback(lambda done: self._over(done, len(request.body)))

    async def close(self) -> None:
        """End all that are on their way."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _over(self, task: asyncio.Task[None], size: int) -> None:
        self._running.discard(task)
        self._bytes -= size

    async def _run(self, mirror: Mirror, request: HttpRequest) -> None:
        answer = _Unread()
        started = asyncio.get_running_loop().time()
        mirror.begin()
        outcome, is_well = Outcome.LOST, None
        try:
            outcome = await self._exchange(mirror, request, answer)
            is_well = outcome in {Outcome.ANSWERED, Outcome.REFUSED} and answer.status < _ENGINE_ERROR
        except Exception:
            _log.error("shadow.failed", **kind_and_place())
        finally:
            mirror.end(is_well=is_well, pause_seconds=pause_of(answer.status, answer.headers))
            first = None if answer.first_byte_at is None else answer.first_byte_at - started
            self._metrics.mirrored(mirror.name, outcome, first)

    async def _exchange(self, mirror: Mirror, request: HttpRequest, answer: _Unread) -> Outcome:
        target, engines = mirror.target, self._engines
        try:
            message = message_for(target, request, mirror.edited(request.body), engines.key(target))
            connection = await engines.get(target)
        except (OSError, HostedKeyError):
            return Outcome.LOST
        try:
            connection.send(message, answer)
            async with asyncio.timeout(MAX_SECONDS):
                is_whole = await answer.is_whole
        except TimeoutError:
            return Outcome.LATE
        finally:
            if not (answer.is_whole.done() and not answer.is_whole.cancelled()):
                connection.cut()
        if not is_whole:
            return Outcome.LOST
        return Outcome.ANSWERED if answer.status < _CLIENT_ERROR else Outcome.REFUSED
