"""Connections to engines: one request at a time on each, kept for the next one while the engine keeps them."""

import asyncio
import ssl
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol, cast

import httptools
import structlog

from gateway.error_places import kind_and_place
from gateway.exchange import Headers
from gateway.hosted_keys import HostedKeys
from gateway.targets import Target

_log = structlog.get_logger("gateway.engine_connections")
CONNECT_SECONDS = 1.0
HOSTED_CONNECT_SECONDS = 5.0
"""With the name's look-up and the handshake."""
IDLE_SECONDS = 4.0
"""Below the 5 s after which engines on uvicorn close an idle connection, so that none is used while it closes."""
MAX_IDLE_PER_ENGINE = 64
MAX_HEAD_BYTES = 64 * 1024


class AnswerReader(Protocol):
    """Whoever reads an engine's answer; of `on_end` and `on_lost` one comes, once, and nothing after it.

    Who fails at a piece or at the end has lost the answer, and is told so.
    """

    def on_head(self, status: int, headers: Headers) -> None:
        """The answer begins."""

    def on_piece(self, data: bytes) -> None:
        """A piece of its body."""

    def on_end(self) -> None:
        """The answer is whole."""

    def on_lost(self) -> None:
        """The engine is gone, or says something that can't be read."""


class EngineConnection(asyncio.Protocol):
    """One connection."""

    def __init__(self, target: Target, on_free: Callable[["EngineConnection"], None]) -> None:
        self.target = target
        self.is_new = True
        """Whether no answer came over it yet: the engine can't have closed it for being idle."""
        self._on_free = on_free
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._head: list[tuple[str, str]] = []
        self._head_bytes = 0
        self._ends_with_connection = False

    @property
    def is_open(self) -> bool:
        """Whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes, reader: AnswerReader) -> None:
        """Send one request; its answer goes to the reader."""
        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._start_head()
        self.flow(True)  # the answer before may have ended while its client was slow
        if self._transport is not None:
            self._transport.write(request)

    def flow(self, goes: bool) -> None:
        """Read on, or let the engine wait."""
        if self._transport is None or self._transport.is_closing():
            return
        if goes:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def cut(self) -> None:
        """End the connection; an engine that still answers sees that its client is gone."""
        self._reader = None
        if self._transport is not None:
            self._transport.abort()

    # asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The engine is there."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The engine is gone, which is the end of an answer that has no other."""
        if self._ends_with_connection and exc is None:
            self._done(keeps=False)
        else:
            self._lost()

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer."""
        if self._parser is None or self._reader is None:
            self.cut()  # nothing was asked
            return
        reader = self._reader
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:  # the fault is the reader's, and nobody else is told of it
            _log.error("engine_answer.failed", **kind_and_place(error.__context__))
            self._reader = reader
            self._lost()
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._lost()

    # httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes <= MAX_HEAD_BYTES:
            self._head.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        """The head is whole; one of 100 to 199 only precedes the answer."""
        if self._parser is None or self._reader is None:
            return
        status = self._parser.get_status_code()
        if self._head_bytes > MAX_HEAD_BYTES:
            self._lost()
        elif status >= 200:
            names = {name for name, _ in self._head}
            self._ends_with_connection = not names & {"content-length", "transfer-encoding"}
            self._reader.on_head(status, tuple(self._head))
        else:
            self._start_head()

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if self._reader is not None:
            self._reader.on_piece(data)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self._parser is not None and self._parser.get_status_code() >= 200:
            self._done(keeps=self._parser.should_keep_alive())

    def _start_head(self) -> None:
        self._head, self._head_bytes, self._ends_with_connection = [], 0, False

    def _done(self, *, keeps: bool) -> None:
        reader, self._reader = self._reader, None
        self.is_new = False
        if reader is None:
            self.cut()  # a second answer, which nobody asked for: the next request would take it for its own
            return
        if keeps and self.is_open:
            self._on_free(self)
        elif self._transport is not None:
            self._transport.close()
        reader.on_end()

    def _lost(self) -> None:
        reader, self._reader = self._reader, None
        self.cut()
        if reader is not None:
            reader.on_lost()


class EngineConnections:
    """The connections that wait for their next request."""

    def __init__(self, keys: HostedKeys | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._keys = keys or HostedKeys(None)
        self._tls = tls
        self._idle: defaultdict[Target, list[tuple[EngineConnection, float]]] = defaultdict(list)

    def key(self, target: Target) -> str | None:
        """Our key for a hosted engine; ``None`` = it is one of the fleet, which takes none.

        Raises:
            HostedKeyError: there is none.
        """
        return self._keys.key(target.api_key_ref) if target.is_hosted else None

    async def get(self, target: Target, *, is_new: bool = False) -> EngineConnection:
        """A connection to an engine, used before or new; ``is_new`` = one that nobody can have closed for being idle.

        Raises:
            OSError: the engine can't be reached, or is not whom its certificate should name.
        """
        now = asyncio.get_running_loop().time()
        waiting = [] if is_new else self._idle.get(target, [])
        while waiting:
            connection, since = waiting.pop()
            if connection.is_open and now - since < IDLE_SECONDS:
                return connection
            connection.cut()
        return await self._connect(target)

    def keep_only(self, names: frozenset[str]) -> None:
        """End what waits for engines that are gone."""
        for target in [known for known in self._idle if known.name not in names]:
            self._end(self._idle.pop(target))

    def close(self) -> None:
        """End all that wait."""
        self.keep_only(frozenset())

    async def _connect(self, target: Target) -> EngineConnection:
        loop = asyncio.get_running_loop()
        tls = self._tls_context() if target.is_hosted else None
        async with asyncio.timeout(HOSTED_CONNECT_SECONDS if target.is_hosted else CONNECT_SECONDS):
            _, connection = await loop.create_connection(
                lambda: EngineConnection(target, self._free),
                target.host,
                target.port,
                ssl=tls,
                server_hostname=target.host if target.is_hosted else None,
            )
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        """The machine's trusted authorities; they are read once, and only where a hosted engine is asked."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls

    def _free(self, connection: EngineConnection) -> None:
        waiting = self._idle[connection.target]
        waiting.append((connection, asyncio.get_running_loop().time()))
        if len(waiting) > MAX_IDLE_PER_ENGINE:
            self._end([waiting.pop(0)])

    @staticmethod
    def _end(waiting: list[tuple[EngineConnection, float]]) -> None:
        for connection, _ in waiting:
            connection.cut()
