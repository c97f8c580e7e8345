"""What gRPC says in header fields: how a call ended, and how long it may take."""

from enum import IntEnum
from urllib.parse import quote_from_bytes

from gateway.http2.header_blocks import literals, status_line

MAX_MESSAGE_CHARS = 1024
CONTENT_TYPE = b"application/grpc"
_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
_UNIT_SECONDS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}
_MAX_TIMEOUT_DIGITS = 8


class Status(IntEnum):
    """How a call ended."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


HEAD = status_line(200) + literals([(b"content-type", CONTENT_TYPE)])
"""The block that starts every answer of a call."""


def status_fields(status: Status, message: str = "") -> bytes:
    """The block that ends a call."""
    if status is Status.OK and not message:
        return _OK
    fields = [(b"grpc-status", b"%d" % status)]
    if message:
        fields.append((b"grpc-message", _escaped(message)))
    return literals(fields)


def timeout_seconds(text: bytes) -> float | None:
    """The field ``grpc-timeout``; ``None`` = it can't be read."""
    digits, unit = text[:-1], _UNIT_SECONDS.get(text[-1:])
    if unit is None or not digits.isdigit() or len(digits) > _MAX_TIMEOUT_DIGITS:
        return None
    return int(digits) * unit


def _escaped(message: str) -> bytes:
    return quote_from_bytes(message[:MAX_MESSAGE_CHARS].encode("utf-8", "replace"), safe=_PLAIN).encode()


_OK = literals([(b"grpc-status", b"0")])
