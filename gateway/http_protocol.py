"""A small HTTP/1.1 server: whole requests in, answers out at once or piece by piece, always an answer."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple, cast

import httptools

from gateway.exchange import Exchange, HttpResponse, head_of
from gateway.shown import shown

MAX_HEAD_BYTES = 64 * 1024
LINGER_SECONDS = 1.0
RECEIVE_SECONDS = 10.0
"""From the first byte of a request to its last."""
LAST_WORDS_SECONDS = 0.5
"""For the end of an answer that may not go on, on its way to a peer that may not read."""
UNREAD_SECONDS = 2.0
"""A peer that leaves so soon after an answer may not have read it; as long as Envoy waits for a decision."""
_HEADER_FRAME_BYTES = len(": \r\n")


class HttpRequest(NamedTuple):
    """One whole request; what it holds never shows in its ``repr``."""

    method: str
    target: str
    headers: dict[str, str]
    """By lower-case name; several of one name are joined by a comma."""
    body: bytes

    def __repr__(self) -> str:
        """No more than the method."""
        return shown(self, "method")


Later = Callable[[Exchange], None]
"""Takes an exchange, and answers through it when it can."""
Handler = Callable[[HttpRequest], HttpResponse | Later]
"""Answers at once or later; it may not block and should not raise."""


class HttpServer:
    """What the connections of one listener share."""

    def __init__(
        self, handler: Handler, *, max_body_bytes: int, on_failure: Handler, idle_seconds: float | None = None
    ) -> None:
        self.handler = handler
        self.max_body_bytes = max_body_bytes
        self.on_failure = on_failure
        """Answers when the handler raises; the exception can be had from ``sys.exc_info``."""
        self.on_cut_short: Callable[[dict[str, str]], None] = _nobody
        """Told the headers of a request whose peer left before it was whole."""
        self.on_deadline: Callable[[], None] | None = None
        """Told when what is still being answered has to end, so that it can say why."""
        self.idle_seconds = idle_seconds
        """How long a connection may say nothing; ``None`` = for ever, for a peer that is ours."""
        self.connections: set[HttpProtocol] = set()
        self.is_closing = False

    def connection(self) -> "HttpProtocol":
        """The protocol of a new connection: the factory that a listener takes."""
        return HttpProtocol(self)

    async def drain(self, deadline_seconds: float) -> None:
        """End idle connections now and the others after their request, or at the deadline."""
        self.is_closing = True
        for connection in tuple(self.connections):
            connection.close_when_idle()
        if closed := [connection.closed for connection in self.connections]:
            await asyncio.wait(closed, timeout=deadline_seconds)
        if self.on_deadline and (closed := [connection.closed for connection in self.connections]):
            self.on_deadline()
            await asyncio.wait(closed, timeout=LAST_WORDS_SECONDS)
        for connection in tuple(self.connections):
            connection.abort()


class HttpProtocol(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_idle = True
        self._is_refused = False
        self._exchange: Exchange | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._patience: asyncio.TimerHandle | None = None
        self._on_unread: Callable[[], None] | None = None
        self._answered_at = 0.0
        self._start()

    # asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast(asyncio.Transport, transport)  # listeners make stream transports only
        self._server.connections.add(self)
        self._wait_for(self._server.idle_seconds, self._close)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._server.connections.discard(self)
        self._wait_for(None, self._close)
        if self._exchange is not None:
            self._exchange.gone()
        elif self._headers:
            self._server.on_cut_short(self._headers)
        elif self._on_unread is not None and asyncio.get_running_loop().time() < self._answered_at + UNREAD_SECONDS:
            self._on_unread()
        if self._linger is not None:
            self._linger.cancel()
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, of several, or of none that can be read."""
        if self._is_refused:
            return
        was_idle, self._is_idle = self._is_idle, False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._refuse(HTTPStatus.NOT_IMPLEMENTED)
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST)
        self._wait_for_more(was_idle)

    def pause_writing(self) -> None:
        """The client reads slowly."""
        if self._exchange is not None:
            self._exchange.on_flow(False)

    def resume_writing(self) -> None:
        """The client has read on."""
        if self._exchange is not None:
            self._exchange.on_flow(True)

    def close_when_idle(self) -> None:
        """Close now, or after the request that is being received."""
        if self._is_idle:
            self._close()

    def abort(self) -> None:
        """Cut the connection."""
        self._on_unread = None
        if self._transport is not None:
            self._transport.abort()

    # httptools

    def on_message_begin(self) -> None:
        """The next request starts. Before the last one is answered nobody of ours sends another."""
        if self._exchange is not None:
            self.abort()
            self._is_refused = True
        self._start()
        self._is_idle, self._on_unread = False, None

    def on_url(self, url: bytes) -> None:
        """A piece of the request target."""
        self._target += url
        self._head_bytes += len(url)
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._head_bytes += len(name) + len(value) + _HEADER_FRAME_BYTES
        key, text, headers = name.decode("latin-1").lower(), value.decode("latin-1"), self._headers
        headers[key] = f"{headers[key]},{text}" if key in headers else text
        if self._head_bytes > MAX_HEAD_BYTES:
            self._refuse_head()

    def on_body(self, body: bytes) -> None:
        """A piece of the body."""
        self._body_bytes += len(body)
        if self._body_bytes > self._server.max_body_bytes:
            self._body.clear()
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """The request is whole: answer it."""
        if self._parser.should_upgrade():
            self._refuse(HTTPStatus.NOT_IMPLEMENTED)
        if self._is_refused:
            return
        method = self._parser.get_method().decode("latin-1")
        request = HttpRequest(method, self._target.decode("latin-1"), self._headers, b"".join(self._body))
        self._start()
        self._answer(request)

    def _answer(self, request: HttpRequest) -> None:
        keeps = self._parser.should_keep_alive() and not self._server.is_closing
        exchange = Exchange(cast(asyncio.Transport, self._transport), keeps_alive=keeps, on_end=self._answered)
        self._exchange = exchange
        try:
            answer = self._server.handler(request)
            if not isinstance(answer, HttpResponse):
                self._wait_for(None, self._close)
                answer(exchange)
        except Exception:
            answer = self._server.on_failure(request)
        if not isinstance(answer, HttpResponse):
            return
        if exchange.is_begun:  # it failed on its way, and its reader has to see that
            exchange.cut()
        else:
            exchange.answer(answer, has_body=request.method != "HEAD")

    def _answered(self, goes_on: bool) -> None:
        if self._exchange is not None and self._exchange.on_unread is not None:
            self._on_unread, self._answered_at = self._exchange.on_unread, asyncio.get_running_loop().time()
        self._exchange = None
        self._is_idle = True
        if self._server.is_closing or not goes_on:
            self._close()
        else:
            self._wait_for(self._server.idle_seconds, self._close)

    def _start(self) -> None:
        self._target = b""
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0

    def _wait_for(self, seconds: float | None, then: Callable[[], None]) -> None:
        """Have something done after a while; what was to be done before is off."""
        if self._patience is not None:
            self._patience.cancel()
        self._patience = None if seconds is None else asyncio.get_running_loop().call_later(seconds, then)

    def _wait_for_more(self, was_idle: bool) -> None:
        if self._is_idle:
            self._wait_for(self._server.idle_seconds, self._close)
        elif was_idle and self._exchange is None:
            self._wait_for(RECEIVE_SECONDS, self._refuse_late)

    def _refuse_late(self) -> None:
        self._refuse(HTTPStatus.REQUEST_TIMEOUT)

    def _refuse_head(self) -> None:
        self._headers.clear()
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer and read on without listening: bytes that are never read would cut the answer off."""
        self._is_refused = True
        if self._transport is None or self._transport.is_closing() or self._linger is not None:
            return
        self._linger = asyncio.get_running_loop().call_later(LINGER_SECONDS, self.abort)
        self._transport.write(head_of(status, (), 0, keeps_alive=False))
        self._transport.write_eof()

    def _close(self) -> None:
        self._on_unread = None
        if self._transport is not None:
            self._transport.close()


def _nobody(_: dict[str, str]) -> None:
    """Nobody is told."""
