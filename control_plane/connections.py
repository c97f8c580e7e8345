"""Limits of a connection to the admin API: how long and how large a head may be, how slowly an answer may be read.

Uvicorn ends a connection that is idle after an answer and nothing else; a client that never finishes its request, or
never reads the answer, would stay for ever.
"""

import asyncio
import json
from typing import Any

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from control_plane.api.problems import MEDIA_TYPE, TYPE_PREFIX

HEAD_SECONDS = 10.0
"""From the opening of a connection, or the end of the answer before, to the end of a request's head."""
MAX_HEAD_BYTES = 64 * 1024
FLUSH_SECONDS = 60.0
"""How long a closed connection may still read its last answer."""
LINGER_SECONDS = 1.0
_REFUSALS = {
    400: ("bad-request", "The request can't be read", "this is no HTTP/1.1 request"),
    408: ("too-slow", "The request came too slowly", f"the head was not whole after {HEAD_SECONDS:g} s"),
    431: ("head-too-large", "The head is too large", f"the head is above {MAX_HEAD_BYTES} bytes"),
}


class _HeadTooLargeError(Exception):
    """Stops the parser; the answer is on its way."""


class LimitedProtocol(HttpToolsProtocol):
    """One connection whose heads are limited in time and size."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._is_in_head = False
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._end_timer: asyncio.TimerHandle | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The time of the first head begins with the connection."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """No time runs for a connection that is gone."""
        self._stop_waiting()
        if self._end_timer is not None:
            self._end_timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Bytes: those of a head that is not whole count, wherever the parser keeps them."""
        if self._is_refused or self.transport.is_closing():
            return
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(431)
        elif self._is_in_head or self._has_answered:
            self._expect_head()

    def on_message_begin(self) -> None:
        """A head starts."""
        super().on_message_begin()
        self._is_in_head, self._head_bytes = True, 0

    def on_headers_complete(self) -> None:
        """A head is whole."""
        self._is_in_head, self._head_bytes = False, 0
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refuse(431)
            raise _HeadTooLargeError
        self._stop_waiting()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What can't be read is answered as a problem too, unless an answer is under way."""
        self._refuse(400)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, and cut it when the last answer is not read in time."""
        super().timeout_keep_alive_handler()
        self._cut_after(FLUSH_SECONDS)

    @property
    def _has_answered(self) -> bool:
        return bool(self.cycle) and self.cycle.response_complete and self.timeout_keep_alive_task is None

    def _expect_head(self) -> None:
        if self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._on_late_head)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _on_late_head(self) -> None:
        self._head_timer = None
        self._refuse(408 if self._is_in_head else None)

    def _refuse(self, status: int | None) -> None:
        """Say why, where no other answer is under way, and end the connection.

        What still comes is read and dropped for a moment: bytes that are never read would cut the answer off.
        """
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        is_answering = bool(self.cycle) and not self.cycle.response_complete
        if status is None or is_answering:
            self.transport.close()
            self._cut_after(FLUSH_SECONDS)
        else:
            self.transport.write(_problem(status))
            self.transport.write_eof()
            self._cut_after(LINGER_SECONDS)

    def _cut_after(self, seconds: float) -> None:
        if self._end_timer is None:
            self._end_timer = self.loop.call_later(seconds, self.transport.abort)


def _problem(status: int) -> bytes:
    slug, title, detail = _REFUSALS[status]
    body = json.dumps({"type": TYPE_PREFIX + slug, "title": title, "status": status, "detail": detail}).encode()
    head = f"HTTP/1.1 {status} {title}\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body
