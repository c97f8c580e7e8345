"""HTTP/2 connections on asyncio: bytes between a transport and a :class:`Connection`."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import structlog

from gateway.http2.connection import Connection, Opener
from gateway.http2.limits import Limits

PREFACE_SECONDS = 5.0
"""How long a peer may take to start."""
_log = structlog.get_logger("gateway.http2")


@dataclass(slots=True)
class Http2Server:
    """What the connections of one listener share."""

    opener: Opener
    clock: Callable[[], float]
    """Monotonic seconds."""
    limits: Limits = field(default_factory=Limits)
    connections: "set[Http2Protocol]" = field(default_factory=set)
    is_draining: bool = False

    def connection(self) -> "Http2Protocol":
        """The protocol of a new connection: the factory that a listener takes."""
        return Http2Protocol(self)

    async def drain(self, deadline_seconds: float) -> None:
        """Let every stream finish, but no longer than this, and close."""
        self.is_draining = True
        for connection in tuple(self.connections):
            connection.drain()
        if closed := [connection.closed for connection in self.connections]:
            await asyncio.wait(closed, timeout=deadline_seconds)
        for connection in tuple(self.connections):
            connection.abort()


class Http2Protocol(asyncio.Protocol):
    """One connection. While the peer does not read what is sent, nothing more is read from it."""

    def __init__(self, server: Http2Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._connection = Connection(server.opener, server.limits, self._wake)
        self._transport: asyncio.Transport | None = None
        self._is_receiving = False
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast(asyncio.Transport, transport)  # listeners make stream transports only
        self._server.connections.add(self)
        self._patience = self._loop.call_later(PREFACE_SECONDS, self.abort)
        self._connection.start()
        if self._server.is_draining:
            self._connection.drain()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._server.connections.discard(self)
        self._be_patient()
        self._connection.lose()
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Bytes of frames, in any pieces."""
        self._is_receiving = True
        self._connection.receive(data, self._server.clock())
        self._is_receiving = False
        if self._patience is not None and self._connection.is_started:
            self._be_patient()
        self._flush()

    def pause_writing(self) -> None:
        """The client reads too slowly: what it sends has to wait as well."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """The client has read."""
        if self._transport is not None:
            self._transport.resume_reading()

    def drain(self) -> None:
        """Finish what is under way, take nothing new, close."""
        self._connection.drain()

    def abort(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _wake(self) -> None:
        if not self._is_receiving:
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        connection, transport = self._connection, self._transport
        if transport is None or transport.is_closing():
            connection.outlet.pieces.clear()
            return
        if connection.outlet.pieces:
            transport.write(connection.outlet.take())
        if connection.is_over:
            self._report(connection)
            transport.close()

    def _report(self, connection: Connection) -> None:
        """Say why the calls of a proxy were cut; what never spoke HTTP/2 is not worth a word."""
        if connection.fault is not None and connection.is_started:
            _log.warning("http2.connection_ended", code=connection.fault.code.name, reason=connection.fault.reason)

    def _be_patient(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
