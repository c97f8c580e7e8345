"""Reads server-sent events piece by piece and keeps every byte, so that what is not changed passes as it came."""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from gateway.errors import GatewayError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DEFAULT_LIMIT_BYTES = 4 * 1024 * 1024
"""One event may hold a whole answer (`response.completed` repeats it)."""


class SseEventTooLong(GatewayError):
    """An event does not end within the limit; the bytes of it stay in ``SseReader.pending``."""


class SseKind(StrEnum):
    """What a block of lines is to a client."""

    DATA = "data"
    """It has a field: data, event, id or retry."""
    COMMENT = "comment"
    """Comment lines alone, as keep-alives are."""
    BLANK = "blank"
    """An empty line on its own."""


class SseEvent(NamedTuple):
    """One block of lines with the blank line that ends it."""

    raw: bytes
    event: str
    """The event's name; empty where none is given."""
    data: bytes
    """The data lines, joined by line feeds."""
    kind: SseKind = SseKind.DATA
    is_complete: bool = True
    """False for what stood at the end of a stream without its blank line, which a browser throws away."""

    def __repr__(self) -> str:
        """Nothing of what it says."""
        return f"SseEvent({self.kind}, {len(self.raw)} bytes)"


class SseReader:
    """Cuts a stream of bytes into events; lines end with LF, CRLF or CR.

    Law: for every chunking, the raws of the events and ``pending`` concatenate to the input, and the events are those
    of one single chunk. A CR that ends a block is settled by the next byte, since a LF may belong to it; where the
    line before ended with a CR alone, it ends the block at once, so that a stream of CRs is not an event late.
    """

    __slots__ = ("_after_cr", "_buffer", "_first", "_limit", "_line_start", "_scanned", "_start")

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._buffer = bytearray()
        self._start = 0
        self._line_start = self._scanned = 0
        self._after_cr = False
        self._first = True

    @property
    def pending(self) -> bytes:
        """The bytes that no event has yet."""
        return bytes(self._buffer[self._start :])

    @property
    def is_between(self) -> bool:
        """Whether the next byte begins an event."""
        return self._start == len(self._buffer)

    def feed(self, data: bytes) -> Iterator[SseEvent]:
        """The events that end in this piece; taken over at once, read while iterated."""
        is_between = self._start == len(self._buffer)
        if is_between and len(data) <= self._limit and (event := _plain(data)) is not None:
            self._first = False
            return iter((event,))
        if self._start:
            del self._buffer[: self._start]
            self._line_start -= self._start
            self._scanned -= self._start
            self._start = 0
        self._buffer += data
        return self._events()

    def close(self) -> Iterator[SseEvent]:
        """What is left at the end of the stream."""
        yield from self._events()
        if self._start == len(self._buffer):
            return
        is_complete = self._line_start < len(self._buffer) and self._buffer[self._line_start :] == b"\r"
        yield self._take(len(self._buffer), is_complete=is_complete)

    def _events(self) -> Iterator[SseEvent]:
        while (end := self._line_and_blank() or self._block_end()) is not None:
            if end - self._start > self._limit:
                raise self._too_long()
            yield self._take(end)
        if len(self._buffer) - self._start > self._limit:
            raise self._too_long()

    def _too_long(self) -> SseEventTooLong:
        return SseEventTooLong(f"an event of the stream is longer than {self._limit} bytes; raise the limit or end it")

    def _line_and_blank(self) -> int:
        """Where a block of a single line ends, as engines write them; 0 = it is another one, or not yet whole."""
        buffer, start = self._buffer, self._start
        feed = buffer.find(b"\n", start) if self._scanned == start else start
        is_it = feed > start and buffer.startswith(b"\n", feed + 1) and buffer.find(b"\r", start, feed) < 0
        return feed + 2 if is_it else 0

    def _block_end(self) -> int | None:
        """Where the first whole block ends; None = not yet known."""
        buffer = self._buffer
        while True:
            ending = _line_ending(buffer, self._scanned)
            if ending < 0:
                self._scanned = len(buffer)
                return None
            is_blank = ending == self._line_start
            is_cr = buffer[ending] == 13
            if is_cr and ending + 1 == len(buffer) and not (is_blank and self._after_cr):
                self._scanned = ending
                return None
            after = ending + 1
            if is_cr and not (is_blank and self._after_cr) and buffer[after] == 10:
                is_cr, after = False, after + 1
            self._line_start = self._scanned = after
            self._after_cr = is_cr
            if is_blank:
                self._after_cr = False
                return after

    def _take(self, end: int, *, is_complete: bool = True) -> SseEvent:
        raw = bytes(self._buffer[self._start : end])
        self._start = self._line_start = self._scanned = end
        text = raw.removeprefix(BYTE_ORDER_MARK) if self._first else raw
        self._first = False
        return _plain(raw) or _event(raw, text, is_complete=is_complete)


def _line_ending(buffer: bytearray, start: int) -> int:
    feed = buffer.find(b"\n", start)
    returned = buffer.find(b"\r", start, feed if feed >= 0 else len(buffer))
    return returned if returned >= 0 else feed


def _plain(raw: bytes) -> SseEvent | None:
    """The event, where it is written as engines do: one line of data."""
    if raw.startswith(b"data: ") and raw.endswith(b"\n\n"):
        length = len(raw)
        if raw.find(b"\n") == length - 2 and b"\r" not in raw:
            return SseEvent(raw, "", raw[6 : length - 2])
    return None


def _event(raw: bytes, text: bytes, *, is_complete: bool) -> SseEvent:
    name, data, has_field, has_comment = b"", [], False, False
    for line in text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"):
        field, _, value = line.partition(b":")
        has_comment = has_comment or (bool(line) and not field)
        has_field = has_field or bool(field)
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    kind = SseKind.DATA if has_field else SseKind.COMMENT if has_comment else SseKind.BLANK
    return SseEvent(raw, name.decode(errors="replace"), b"\n".join(data), kind, is_complete)
