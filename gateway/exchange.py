"""The answer to one request, written at once or piece by piece."""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple

Headers = tuple[tuple[str, str], ...]
OF_A_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "trailer", "upgrade"})
"""Headers about one connection, which say nothing about the next."""


class HttpResponse(NamedTuple):
    """One whole answer."""

    status: int
    headers: Headers = ()
    body: bytes = b""
    on_unread: Callable[[], None] | None = None
    """Told when the peer leaves before it can have read this; `None` = nothing hangs on it."""


class Exchange:
    """Where the answer goes. Whoever answers is told when the client leaves, and when it reads too slowly."""

    __slots__ = (
        "_is_begun",
        "_is_over",
        "_keeps_alive",
        "_on_end",
        "_transport",
        "on_flow",
        "on_gone",
        "on_over",
        "on_unread",
    )

    def __init__(self, transport: asyncio.Transport, *, keeps_alive: bool, on_end: Callable[[bool], None]) -> None:
        self._transport = transport
        self._keeps_alive = keeps_alive
        self._on_end = on_end
        """Told once the answer is whole, with whether the connection goes on."""
        self._is_begun = False
        self._is_over = False
        self.on_unread: Callable[[], None] | None = None
        """Of the answer that was given."""
        self.on_gone: Callable[[], None] = _nobody
        self.on_over: Callable[[], None] = _nobody
        """Told in the turn in which the last byte is written: before anything that the client sends next is seen."""
        self.on_flow: Callable[[bool], None] = _nobody_hears
        """Told ``False`` when no more should be written for now, and ``True`` when it may go on."""

    @property
    def is_begun(self) -> bool:
        """Whether the status is on its way, so that it can't be another one."""
        return self._is_begun

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be written."""
        return self._is_over

    def answer(self, response: HttpResponse, *, has_body: bool = True) -> None:
        """The whole answer."""
        if self._is_over:
            if response.on_unread is not None:
                response.on_unread()
            return
        self._is_begun, self.on_unread = True, response.on_unread
        head = head_of(response.status, response.headers, len(response.body), keeps_alive=self._keeps_alive)
        self._transport.write(head + (response.body if has_body else b""))
        self._finish(goes_on=self._keeps_alive)

    def begin(self, status: int, headers: Headers) -> None:
        """The status and the headers of an answer in pieces."""
        self._is_begun = True
        if not self._is_over:
            self._transport.write(head_of(status, headers, None, keeps_alive=self._keeps_alive))

    def write(self, data: bytes) -> None:
        """One piece."""
        if data and not self._is_over:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        """The answer in pieces is whole."""
        if not self._is_over:
            self._transport.write(b"0\r\n\r\n")
            self._finish(goes_on=self._keeps_alive)

    def cut(self) -> None:
        """The answer stops short, which its reader must be able to see: the connection ends without a last piece."""
        if not self._is_over:
            self._finish(goes_on=False)

    def gone(self) -> None:
        """The client left."""
        if not self._is_over:
            self._is_over = True
            self.on_gone()
            self._let_go()

    def _finish(self, *, goes_on: bool) -> None:
        self._is_over = True
        self._on_end(goes_on)
        self.on_over()
        self._let_go()

    def _let_go(self) -> None:
        """Of those who were told, who hold this one: a cycle would wait for the collector, which stops everything."""
        self._on_end, self.on_flow = _nobody_hears, _nobody_hears
        self.on_gone = self.on_over = _nobody


def head_of(status: int, headers: Headers, length: int | None, *, keeps_alive: bool) -> bytes:
    """The head of an answer; without a length it comes in pieces.

    Raises:
        ValueError: a header holds a line break.
    """
    lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
    if not keeps_alive:
        lines.append("connection: close")
    lines += ("", "")
    head = "\r\n".join(lines)
    breaks = len(lines) - 1
    if head.count("\r") != breaks or head.count("\n") != breaks:
        raise ValueError("a header of an answer holds a line break")
    return head.encode("latin-1")


_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def _nobody() -> None:
    """Nobody is told."""


def _nobody_hears(_: bool) -> None:
    """Nobody is told."""
