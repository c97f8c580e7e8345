"""gRPC messages in the bytes of a stream: a flag, a length, and as many bytes."""

import struct

from gateway.http2.grpc_status import Status

HEAD_BYTES = 5
_HEAD = struct.Struct(">BI")


class MessageFault(Exception):
    """The bytes are no messages that are taken here."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def prefixed(message: bytes) -> bytes:
    """A message as it is sent."""
    return _HEAD.pack(0, len(message)) + message


class MessageReader:
    """Cuts messages out of bytes that come in any pieces."""

    __slots__ = ("_held_bytes", "_max_bytes", "_needed_bytes", "_pieces")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._held_bytes = 0
        self._needed_bytes = HEAD_BYTES

    @property
    def is_within(self) -> bool:
        """A message has begun and is not whole."""
        return bool(self._pieces)

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole now."""
        if self._pieces:
            self._pieces.append(data)
            self._held_bytes += len(data)
            if self._held_bytes < self._needed_bytes:
                return []
            data = b"".join(self._pieces)
            self._pieces = []
        messages: list[bytes] = []
        at, end = 0, len(data)
        self._needed_bytes = HEAD_BYTES
        while end - at >= HEAD_BYTES:
            flag, length = _HEAD.unpack_from(data, at)
            self._check(flag, length)
            if end - at < HEAD_BYTES + length:
                self._needed_bytes = HEAD_BYTES + length
                break
            messages.append(data[at + HEAD_BYTES : at + HEAD_BYTES + length])
            at += HEAD_BYTES + length
        if at < end:
            self._pieces = [data[at:]]
            self._held_bytes = end - at
        return messages

    def _check(self, flag: int, length: int) -> None:
        if flag:
            raise MessageFault(Status.UNIMPLEMENTED, "compressed messages are not taken")
        if length > self._max_bytes:
            raise MessageFault(Status.RESOURCE_EXHAUSTED, f"a message of {length} bytes, at most {self._max_bytes}")
