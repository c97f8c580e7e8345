"""HTTP/2 frames (RFC 9113 sections 4 and 6): how they are written, and how they are cut out of a stream of bytes."""

import struct
from collections.abc import Callable, Iterable

from gateway.http2.errors import ConnectionFault, ErrorCode

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES = 9
DEFAULT_WINDOW_BYTES = 65_535
DEFAULT_FRAME_BYTES = 16_384
MAX_WINDOW_BYTES = 2**31 - 1
MAX_STREAM_ID = 2**31 - 1

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = 0x1
ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
WITH_PRIORITY = 0x20

OnFrame = Callable[[int, int, int, bytes], None]
"""Takes kind, flags, stream and payload."""

_HEAD = struct.Struct(">HBBBI")
_HEAD_AND_NUMBER = struct.Struct(">HBBBII")


def frame(kind: int, flags: int, stream_id: int, payload: bytes = b"") -> bytes:
    """One whole frame."""
    size = len(payload)
    return _HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream_id) + payload


def window_update(stream_id: int, count: int) -> bytes:
    """Let the peer send more."""
    return _HEAD_AND_NUMBER.pack(0, 4, WINDOW_UPDATE, 0, stream_id, count)


def rst_stream(stream_id: int, code: ErrorCode) -> bytes:
    """End a stream at once."""
    return _HEAD_AND_NUMBER.pack(0, 4, RST_STREAM, 0, stream_id, code)


def goaway(last_stream_id: int, code: ErrorCode, reason: str = "") -> bytes:
    """Take no streams after this one."""
    return frame(GOAWAY, 0, 0, struct.pack(">II", last_stream_id, code) + reason.encode("ascii", "replace"))


def settings(pairs: Iterable[tuple[int, int]]) -> bytes:
    """State the own settings."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", name, value) for name, value in pairs))


def unpadded(flags: int, payload: bytes) -> bytes:
    """The payload without its padding."""
    if not flags & PADDED:
        return payload
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the padding is longer than the frame")
    return payload[1 : len(payload) - payload[0]]


class FrameReader:
    """Cuts the client's preface and then whole frames out of bytes that come in any pieces."""

    def __init__(self, on_frame: OnFrame, max_frame_bytes: int) -> None:
        self._on_frame = on_frame
        self._max_frame_bytes = max_frame_bytes
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._needed_bytes = 0
        self._has_preface = False

    def feed(self, data: bytes) -> None:
        """Hand on every frame that is whole now."""
        if self._pieces:
            self._pieces.append(data)
            self._held_bytes += len(data)
            if self._held_bytes < self._needed_bytes:
                return
            data = b"".join(self._pieces)
            self._pieces = []
        at = 0
        if not self._has_preface:
            at = self._take_preface(data)
        if self._has_preface:
            at = self._take_frames(data, at)
        if at < len(data):
            self._pieces = [data[at:]]
            self._held_bytes = len(data) - at

    def _take_preface(self, data: bytes) -> int:
        start = data[: len(PREFACE)]
        if not PREFACE.startswith(start):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "the connection does not start as HTTP/2")
        self._needed_bytes = len(PREFACE)
        self._has_preface = len(start) == len(PREFACE)
        return len(start) if self._has_preface else 0

    def _take_frames(self, data: bytes, at: int) -> int:
        end = len(data)
        self._needed_bytes = HEAD_BYTES
        while end - at >= HEAD_BYTES:
            high, low, kind, flags, stream_id = _HEAD.unpack_from(data, at)
            size = HEAD_BYTES + (high << 8 | low)
            if size > self._max_frame_bytes + HEAD_BYTES:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"a frame is larger than {self._max_frame_bytes}")
            if end - at < size:
                self._needed_bytes = size
                break
            self._on_frame(kind, flags, stream_id & MAX_STREAM_ID, data[at + HEAD_BYTES : at + size])
            at += size
        return at
