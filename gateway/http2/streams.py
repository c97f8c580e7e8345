"""Streams: what may be sent and taken on each, and what all of a connection share."""

from collections.abc import Callable
from typing import Protocol

from gateway.http2.errors import ConnectionFault, ErrorCode, StreamFault
from gateway.http2.frames import (
    DATA,
    DEFAULT_FRAME_BYTES,
    DEFAULT_WINDOW_BYTES,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    MAX_WINDOW_BYTES,
    frame,
    rst_stream,
    window_update,
)


class StreamUser(Protocol):
    """Takes what comes in on one stream."""

    def data(self, data: bytes) -> None:
        """Bytes of the body; each must be given back by ``Stream.consume`` before as many more are sent."""

    def ended(self) -> None:
        """The peer sends no more."""

    def writable(self) -> None:
        """What was kept back has been sent."""

    def closed(self) -> None:
        """The stream is over, whoever ended it; said once."""


class Outlet:
    """What goes out on a connection, and how much of it the peer takes."""

    __slots__ = ("blocked", "frame_bytes", "is_shut", "max_unsent_bytes", "pieces", "streams", "wake", "window")

    def __init__(self, wake: Callable[[], None], max_unsent_bytes: int) -> None:
        self.wake = wake
        self.max_unsent_bytes = max_unsent_bytes
        self.pieces: list[bytes] = []
        self.window = DEFAULT_WINDOW_BYTES
        self.frame_bytes = DEFAULT_FRAME_BYTES
        self.blocked: dict[int, Stream] = {}
        """Streams that keep something back, the one that waits longest first."""
        self.streams: dict[int, Stream] = {}
        """Every open stream."""
        self.is_shut = False

    def write(self, data: bytes) -> None:
        """Have bytes sent, with others of the same turn."""
        if self.is_shut:
            return
        if not self.pieces:
            self.wake()
        self.pieces.append(data)

    def take(self) -> bytes:
        """What is to be sent now."""
        data = self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)
        self.pieces.clear()
        return data

    def widen(self, count: int) -> None:
        """The peer takes more on all streams together."""
        self.window += count
        if self.window > MAX_WINDOW_BYTES:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "the window of the connection is too large")
        for stream in tuple(self.blocked.values()):
            if self.window <= 0:
                return
            stream.pump()


class Inlet:
    """How much the peer may send on a connection or a stream."""

    __slots__ = ("_id", "_outlet", "_size", "_taken", "window")

    def __init__(self, stream_id: int, outlet: Outlet, size: int) -> None:
        self._id = stream_id
        self._outlet = outlet
        self._size = size
        self._taken = 0
        self.window = size

    def consume(self, count: int) -> None:
        """Bytes are done with; the peer is told when they are a good part of the window."""
        self._taken += count
        if self._taken * 2 >= self._size:
            self._outlet.write(window_update(self._id, self._taken))
            self.window += self._taken
            self._taken = 0


class Stream:
    """One stream of a peer's."""

    __slots__ = (
        "_inlet",
        "_is_ending",
        "_outlet",
        "_shared_inlet",
        "_trailers",
        "_unsent",
        "id",
        "is_answered",
        "is_closed",
        "is_remote_open",
        "unconsumed_bytes",
        "user",
        "window",
    )

    def __init__(self, stream_id: int, outlet: Outlet, shared: Inlet, own: Inlet, window: int) -> None:
        self.id = stream_id
        self.user: StreamUser | None = None
        """``None`` while the stream is being opened, and when it is over."""
        self.window = window
        self.is_remote_open = True
        self.is_answered = False
        """The answer has begun."""
        self.is_closed = False
        self.unconsumed_bytes = 0
        self._outlet = outlet
        self._shared_inlet = shared
        self._inlet = own
        self._unsent = bytearray()
        self._trailers: bytes | None = None
        self._is_ending = False

    @property
    def unsent_bytes(self) -> int:
        """What is kept back until the peer takes it."""
        return len(self._unsent)

    # what the user of the stream does

    def send_headers(self, block: bytes, *, ends: bool = False) -> None:
        """Send the fields that start the answer, and end it if it has no body."""
        if self.is_closed or self._is_ending:
            return
        self.is_answered = True
        self._outlet.write(frame(HEADERS, END_HEADERS | (END_STREAM if ends else 0), self.id, block))
        if ends:
            self._is_ending = True
            self._local_end()

    def send_data(self, data: bytes) -> None:
        """Send a piece of the body, or keep what the peer does not take yet."""
        if self.is_closed or self._is_ending:
            return
        size = len(data)
        outlet = self._outlet
        if not self._unsent and size <= self.window and size <= outlet.window and size <= outlet.frame_bytes:
            self.window -= size
            outlet.window -= size
            outlet.write(frame(DATA, 0, self.id, data))
            return
        self._unsent += data
        self.pump()
        if len(self._unsent) > outlet.max_unsent_bytes:
            self.reset(ErrorCode.ENHANCE_YOUR_CALM)

    def send_trailers(self, block: bytes) -> None:
        """End the answer after all of its body."""
        if self.is_closed or self._is_ending:
            return
        self._trailers = block
        self._is_ending = True
        if not self._unsent:
            self._send_trailers()

    def consume(self, count: int) -> None:
        """Bytes that came in are done with: as many more may come."""
        if self.is_closed:
            return
        self.unconsumed_bytes -= count
        self._shared_inlet.consume(count)
        if self.is_remote_open:
            self._inlet.consume(count)

    def reset(self, code: ErrorCode) -> None:
        """End both sides at once."""
        if not self.is_closed:
            self._outlet.write(rst_stream(self.id, code))
            self.close()

    # what the connection does

    def receive(self, data: bytes, size: int) -> None:
        """Bytes have come in; with padding they took ``size`` bytes of the window."""
        if not self.is_remote_open:
            raise StreamFault(self.id, ErrorCode.STREAM_CLOSED, "data after the end")
        self._inlet.window -= size
        if self._inlet.window < 0:
            raise StreamFault(self.id, ErrorCode.FLOW_CONTROL_ERROR, "more data than the window of the stream")
        self.unconsumed_bytes += size
        if size > len(data):
            self.consume(size - len(data))
        if data and self.user is not None:
            self.user.data(data)

    def receive_end(self) -> None:
        """The peer sends no more."""
        if not self.is_remote_open:
            raise StreamFault(self.id, ErrorCode.STREAM_CLOSED, "a second end")
        self.is_remote_open = False
        if self.user is not None:
            self.user.ended()

    def widen(self, count: int) -> None:
        """The peer takes more, or less after a change of its settings."""
        self.window += count
        if self.window > MAX_WINDOW_BYTES:
            raise StreamFault(self.id, ErrorCode.FLOW_CONTROL_ERROR, "the window of the stream is too large")
        if self._unsent:
            self.pump()

    def pump(self) -> None:
        """Send what was kept back, as far as the peer takes it."""
        outlet = self._outlet
        while self._unsent:
            room = min(self.window, outlet.window, outlet.frame_bytes)
            if room <= 0:
                outlet.blocked.pop(self.id, None)
                outlet.blocked[self.id] = self
                return
            piece = bytes(self._unsent[:room])
            del self._unsent[:room]
            self.window -= len(piece)
            outlet.window -= len(piece)
            outlet.write(frame(DATA, 0, self.id, piece))
        if outlet.blocked.pop(self.id, None) is None:
            return
        if self._trailers is not None:
            self._send_trailers()
        elif self.user is not None:
            self.user.writable()

    def close(self) -> None:
        """Both sides are over; nobody is asked any more."""
        if self.is_closed:
            return
        self.is_closed = True
        self._unsent.clear()
        self._outlet.blocked.pop(self.id, None)
        if self.unconsumed_bytes:
            self._shared_inlet.consume(self.unconsumed_bytes)
            self.unconsumed_bytes = 0
        self._outlet.streams.pop(self.id, None)
        user, self.user = self.user, None  # no ring of references: what a stream held is freed now
        if user is not None:
            user.closed()

    def _send_trailers(self) -> None:
        block, self._trailers = self._trailers or b"", None
        self._outlet.write(frame(HEADERS, END_HEADERS | END_STREAM, self.id, block))
        self._local_end()

    def _local_end(self) -> None:
        if self.is_remote_open:
            self._outlet.write(rst_stream(self.id, ErrorCode.NO_ERROR))
        self.close()
