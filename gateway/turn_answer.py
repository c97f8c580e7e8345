"""The answer to one turn on its way to the WebSocket: never more of it is held than a slow client may leave."""

import asyncio
from collections import deque

from gateway.engine_connections import EngineConnection
from gateway.exchange import Headers
from gateway.refusals import Reason
from gateway.sse import SseEvent, SseEventTooLong, SseReader
from gateway.turn_messages import DONE, error_message, failure

MOST_WAITING_BYTES = 256 * 1024
"""Of messages that the client has not taken; then the answer waits where it comes from."""
MAX_WHOLE_BYTES = 8 * 1024 * 1024
"""Of an answer that is no stream."""
_STREAM = "text/event-stream"
_LOST = "The answer broke off."
_TOO_LONG = "The answer holds an event that is too long to be passed on."


class TurnAnswer:
    """Reads an answer as `EngineConnection` tells it, and gives its messages one by one."""

    def __init__(self) -> None:
        self.status = 0
        self._connection: EngineConnection | None = None
        self._messages: deque[str] = deque()
        self._waiting_bytes = 0
        self._is_over = False
        self._news = asyncio.Event()
        self._events: SseReader | None = None
        self._whole = bytearray()
        self._retry_after: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._is_over

    def ask(self, connection: EngineConnection, request: bytes) -> None:
        """Send the request, unless it was cancelled before it could be."""
        if self._is_over:
            connection.cut()
            return
        self._connection = connection
        connection.send(request, self)

    async def next(self) -> str | None:
        """The next message; ``None`` = that was all."""
        while not self._messages:
            if self._is_over:
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        self._waiting_bytes -= len(message)
        if self._waiting_bytes <= MOST_WAITING_BYTES // 2 and self._connection is not None and not self._is_over:
            self._connection.flow(True)
        return message

    def fail(self, status: int, reason: str, text: str) -> None:
        """End it by an error, without what its client did not take yet."""
        if not self._is_over:
            self._drop()
            self._end(failure(status, reason, text))

    def cut(self) -> None:
        """Nobody wants it any more: whoever answers sees that at once."""
        if self._connection is not None and not self._is_over:
            self._connection.cut()
        self._is_over = True
        self._news.set()

    # engine_connections.AnswerReader

    def on_head(self, status: int, headers: Headers) -> None:
        """The answer begins."""
        self.status = status
        named = dict(headers)
        self._retry_after = named.get("retry-after")
        if status == 200 and named.get("content-type", "").lower().startswith(_STREAM):
            self._events = SseReader()

    def on_piece(self, data: bytes) -> None:
        """A piece of it."""
        if self._events is None:
            self._whole += data
            if len(self._whole) > MAX_WHOLE_BYTES:
                self.fail(502, Reason.ENGINE_LOST, _TOO_LONG)
            return
        try:
            for event in self._events.feed(data):
                self._add_event(event)
        except SseEventTooLong:
            self.fail(502, Reason.ENGINE_LOST, _TOO_LONG)
            return
        if self._waiting_bytes > MOST_WAITING_BYTES and self._connection is not None:
            self._connection.flow(False)

    def on_end(self) -> None:
        """It is whole."""
        if self._events is not None:
            self._end()
        elif self.status == 200:
            self._end(self._whole.decode(errors="replace"))
        else:
            self._end(error_message(self.status, bytes(self._whole), self._retry_after))

    def on_lost(self) -> None:
        """It broke off."""
        self._end(failure(502, Reason.ENGINE_LOST, _LOST))

    def _add_event(self, event: SseEvent) -> None:
        if event.data and event.data != DONE.encode():
            self._add(event.data.decode(errors="replace"))

    def _add(self, message: str) -> None:
        self._messages.append(message)
        self._waiting_bytes += len(message)
        self._news.set()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.cut()
        self._messages.clear()
        self._waiting_bytes = 0

    def _end(self, *last: str) -> None:
        """Every turn has one end, by which its client knows that it is over."""
        if self._is_over:
            return
        for message in (*last, DONE):
            self._add(message)
        self._is_over = True
