"""What can go wrong on an HTTP/2 connection, by the codes of RFC 9113 section 7."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """Why a stream or a connection ends."""

    NO_ERROR = 0x0
    PROTOCOL_ERROR = 0x1
    INTERNAL_ERROR = 0x2
    FLOW_CONTROL_ERROR = 0x3
    SETTINGS_TIMEOUT = 0x4
    STREAM_CLOSED = 0x5
    FRAME_SIZE_ERROR = 0x6
    REFUSED_STREAM = 0x7
    CANCEL = 0x8
    COMPRESSION_ERROR = 0x9
    CONNECT_ERROR = 0xA
    ENHANCE_YOUR_CALM = 0xB


class ConnectionFault(Exception):
    """The peer broke a rule of the connection, which ends with GOAWAY."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.code = code
        self.reason = reason


class StreamFault(Exception):
    """The peer broke a rule of one stream, which ends with RST_STREAM."""

    def __init__(self, stream_id: int, code: ErrorCode, reason: str) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.stream_id = stream_id
        self.code = code
        self.reason = reason
