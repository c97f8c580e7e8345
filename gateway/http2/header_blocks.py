"""Header blocks: unpacked and checked when they come in, written as plain literals when they go out."""

import re
from collections.abc import Iterable
from typing import NamedTuple

import hpack

from gateway.http2.errors import ConnectionFault, ErrorCode

Headers = tuple[tuple[bytes, bytes], ...]

_KNOWN_BLOCKS = 256
_MAX_PIECES = 128
_PSEUDO = frozenset((b":method", b":scheme", b":path", b":authority"))
_REQUIRED = frozenset((b":method", b":scheme", b":path"))
_CONNECTION_FIELDS = frozenset((b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"))
_NAME = re.compile(rb":?[a-z0-9!#$%&'*+.^_`|~-]+")
_STATUS_INDEX = {200: b"\x88", 204: b"\x89", 206: b"\x8a", 304: b"\x8b", 400: b"\x8c", 404: b"\x8d", 500: b"\x8e"}


class HeaderBlock:
    """A block that comes in several frames."""

    def __init__(self, stream_id: int, max_bytes: int, *, ends: bool) -> None:
        self.stream_id = stream_id
        self.ends = ends
        self._pieces: list[bytes] = []
        self._left = max_bytes

    def add(self, piece: bytes) -> None:
        """Take the next piece; there may not be many, however small."""
        self._pieces.append(piece)
        self._left -= len(piece)
        if self._left < 0 or len(self._pieces) > _MAX_PIECES:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block is too large or in too many pieces")

    @property
    def whole(self) -> bytes:
        """All of it."""
        return b"".join(self._pieces)


class Unpacked(NamedTuple):
    """A block's fields, looked at once however often the same block comes."""

    headers: Headers
    request_fault: str | None
    """What is wrong with them at the start of a stream; ``None`` = nothing."""


class HeaderUnpacker:
    """Unpacks blocks in the order they come in; the table of the connection is in here.

    A block that only points into the table changes nothing in it, so the same bytes mean the same fields until the
    table changes: a proxy sends such a block for nearly every stream, and looking it up is far cheaper.
    """

    def __init__(self, max_list_bytes: int) -> None:
        self._decoder = hpack.Decoder(max_header_list_size=max_list_bytes)
        self._known: dict[bytes, Unpacked] = {}

    def unpack(self, block: bytes) -> "Unpacked":
        """The fields of a block."""
        known = self._known.get(block)
        if known is not None:
            return known
        try:
            unpacked = self._decoder.decode(block, raw=True)
        except hpack.OversizedHeaderListError:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "the header list is too large") from None
        except (hpack.HPACKError, ValueError, IndexError):
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "a header block can't be unpacked") from None
        headers = tuple((bytes(name), bytes(value)) for name, value in unpacked)
        fields = Unpacked(headers, request_fault(headers))
        if not _only_points(block):
            self._known.clear()
        elif len(self._known) < _KNOWN_BLOCKS:
            self._known[block] = fields
        return fields


def _only_points(block: bytes) -> bool:
    """Whether each byte is an indexed field of its own: the top bit set, and not the start of a longer number."""
    return bool(block) and min(block) > 0x80 and max(block) < 0xFF


def request_fault(headers: Headers) -> str | None:
    """What is wrong with the fields that open a stream; ``None`` = nothing."""
    seen: set[bytes] = set()
    is_regular = False
    for name, value in headers:
        if name[:1] != b":":
            is_regular = True
        elif is_regular or name in seen or name not in _PSEUDO:
            return "a pseudo field is unknown, named twice, or after a regular one"
        seen.add(name)
        if fault := _field_fault(name, value):
            return fault
    return None if seen >= _REQUIRED else "a request needs :method, :scheme and :path"


def trailers_fault(headers: Headers) -> str | None:
    """What is wrong with the fields that end a stream; ``None`` = nothing."""
    for name, value in headers:
        if name[:1] == b":":
            return "trailers hold a pseudo field"
        if fault := _field_fault(name, value):
            return fault
    return None


def _field_fault(name: bytes, value: bytes) -> str | None:
    if name in _CONNECTION_FIELDS or not _NAME.fullmatch(name):
        return "a field has a name that HTTP/2 does not allow"
    if b"\r" in value or b"\n" in value or b"\0" in value:
        return "a field holds a line break"
    return "the field te may only say trailers" if name == b"te" and value != b"trailers" else None


def status_line(status: int) -> bytes:
    """The field ``:status``."""
    return _STATUS_INDEX.get(status) or b"\x08" + _text(b"%d" % status)


def literals(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Fields that no table keeps, so that a block written once can be sent on any connection."""
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in fields)


def _text(text: bytes) -> bytes:
    return _length(len(text)) + text


def _length(number: int) -> bytes:
    """A number with a prefix of seven bits (RFC 7541 section 5.1)."""
    if number < 0x7F:
        return bytes((number,))
    rest = number - 0x7F
    out = bytearray((0x7F,))
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
