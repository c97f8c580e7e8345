"""Gets a page of an engine again and again: bounded in size and time, over one connection that is kept while it can."""

import asyncio
from enum import StrEnum
from typing import cast

import httptools

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""A hundred times what a page of vLLM has."""
FETCH_SECONDS = 2.0


class PageFault(StrEnum):
    """Why there is no page; the value is a metric's label."""

    UNREACHABLE = "unreachable"
    LATE = "late"
    LOST = "lost"
    STATUS = "status"
    TOO_LONG = "too_long"
    UNREADABLE = "unreadable"


class PageError(Exception):
    """There is no page."""

    def __init__(self, fault: PageFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


class PageSource:
    """The pages of one engine; one question at a time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._kept: _Connection | None = None

    async def fetch(self, target: str) -> bytes:
        """The page at a path.

        Raises:
            PageError: there is none.
        """
        connection, self._kept = self._kept, None
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                if connection is None or not connection.is_open:
                    connection = await self._connect()
                page = await connection.ask(
                    f"GET {target} HTTP/1.1\r\nhost: {self._address}\r\naccept: text/plain\r\n\r\n".encode()
                )
        except TimeoutError as error:
            raise PageError(PageFault.LATE) from error
        except OSError as error:
            raise PageError(PageFault.UNREACHABLE) from error
        finally:
            self._keep(connection)
        return page

    def close(self) -> None:
        """End the connection that is kept."""
        if self._kept is not None:
            self._kept.cut()

    def _keep(self, connection: "_Connection | None") -> None:
        if connection is None:
            return
        if connection.is_free:
            self._kept = connection
        else:
            connection.cut()

    async def _connect(self) -> "_Connection":
        host, _, port = self._address.rpartition(":")
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, host.strip("[]"), int(port))
        return connection


class _Connection(asyncio.Protocol):
    """One connection; its answers are collected."""

    def __init__(self) -> None:
        self.is_free = False
        """Whether the next question can be asked: the answer is whole, and the engine goes on."""
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._page: asyncio.Future[bytes] | None = None
        self._pieces = bytearray()

    @property
    def is_open(self) -> bool:
        """Whether the engine is still there."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer."""
        self.is_free = False
        self._parser = httptools.HttpResponseParser(self)
        self._pieces.clear()
        self._page = asyncio.get_running_loop().create_future()
        if self._transport is not None:
            self._transport.write(request)
        return await self._page

    def cut(self) -> None:
        """End it."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The engine is there."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """The engine is gone."""
        del exc
        self.is_free = False
        self._fail(PageFault.LOST)

    def data_received(self, data: bytes) -> None:
        """Bytes of an answer."""
        if self._parser is None or self._page is None or self._page.done():
            self.is_free = False
            self.cut()  # nothing was asked
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(PageFault.LOST)

    # httptools

    def on_body(self, data: bytes) -> None:
        """A piece of the page."""
        if len(self._pieces) + len(data) > MAX_PAGE_BYTES:
            self._fail(PageFault.TOO_LONG)
        else:
            self._pieces += data

    def on_message_complete(self) -> None:
        """The page is whole."""
        if self._parser is None or self._page is None or self._page.done():
            return
        self.is_free = self._parser.should_keep_alive()
        if self._parser.get_status_code() == 200:
            self._page.set_result(bytes(self._pieces))
        else:
            self._fail(PageFault.STATUS)

    def _fail(self, fault: PageFault) -> None:
        if self._page is not None and not self._page.done():
            self._page.set_exception(PageError(fault))
