"""The settings that the peer states (RFC 9113 section 6.5.2)."""

import struct
from collections.abc import Iterator

from gateway.http2.errors import ConnectionFault, ErrorCode
from gateway.http2.frames import DEFAULT_FRAME_BYTES, DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES

HEADER_TABLE_SIZE = 0x1
ENABLE_PUSH = 0x2
MAX_CONCURRENT_STREAMS = 0x3
INITIAL_WINDOW_SIZE = 0x4
MAX_FRAME_SIZE = 0x5
MAX_HEADER_LIST_SIZE = 0x6

_ENTRY_BYTES = 6
_MAX_FRAME_BYTES = 2**24 - 1


class PeerSettings:
    """What the peer takes; the other settings bear on nothing that a server sends."""

    def __init__(self) -> None:
        self.window_bytes = DEFAULT_WINDOW_BYTES
        self.frame_bytes = DEFAULT_FRAME_BYTES

    def change(self, payload: bytes) -> None:
        """Take over what a SETTINGS frame says."""
        for name, value in _entries(payload):
            if name == INITIAL_WINDOW_SIZE:
                if value > MAX_WINDOW_BYTES:
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, f"an initial window of {value}")
                self.window_bytes = value
            elif name == MAX_FRAME_SIZE:
                if not DEFAULT_FRAME_BYTES <= value <= _MAX_FRAME_BYTES:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"a largest frame of {value}")
                self.frame_bytes = value
            elif name == ENABLE_PUSH and value > 1:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"a push setting of {value}")


def _entries(payload: bytes) -> Iterator[tuple[int, int]]:
    if len(payload) % _ENTRY_BYTES:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, f"a SETTINGS frame of {len(payload)} bytes")
    yield from struct.iter_unpack(">HI", payload)
