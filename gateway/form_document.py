"""The form of an upload (``multipart/form-data``), read so strictly that an engine cannot read it otherwise.

Readers of forms differ on what stands before the first boundary, on bare line ends, on names without quotes, on names
that come twice, and on headers that say more than they need. Clients send none of that, so it is refused.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gateway.request_document import BadDocument

FILE_FIELD = "file"
MAX_PARTS = 64
MAX_HEAD_BYTES = 4096
MAX_TEXT_BYTES = 64 * 1024
FILE_BYTES = "file_bytes"
"""The member of the document that says how long the file is."""
FILE_DIGEST = "input"
"""The member that stands for what is in the file, as the router tells one from another."""
DIGESTED_BYTES = 64 * 1024
"""Of the beginning of a file: all of it would take milliseconds, and nobody else is decided about meanwhile."""

_BOUNDARY = r"[0-9A-Za-z'()+_,./:=?-]{1,70}"
_CONTENT_TYPE = re.compile(
    rf'multipart/form-data; ?boundary=(?:"({_BOUNDARY})"|([0-9A-Za-z\'+_.-]{{1,70}}))', re.IGNORECASE
)
_DISPOSITION = re.compile(rb'form-data; name="([A-Za-z0-9_.\[\]-]{1,100})"(; filename="[^"\\\x00-\x1f\x7f]*")?')
_PLAIN_HEADERS = frozenset({b"content-type", b"content-length"})
_LIST_SUFFIX = "[]"
_FLAGS = {"true": True, "false": False}


class FormPart(NamedTuple):
    """One part of a form."""

    name: str
    is_file: bool
    start: int
    end: int
    """Of its value, in the body."""
    states_length: bool
    """Whether a header of its own says how long it is."""


def parse_form(content_type: str, body: bytes) -> Mapping[str, object]:
    """The members of an upload: texts as they are, ``stream`` as a flag, and the length of its one file.

    Raises:
        BadDocument: it can't be read, or more than one way; the message says why without quoting it.
    """
    stated = _CONTENT_TYPE.fullmatch(content_type.strip())
    if stated is None:
        raise BadDocument("the header 'Content-Type' must be multipart/form-data with a boundary and nothing else")
    boundary = b"--" + (stated[1] or stated[2]).encode()
    parts = list(_parts(body, boundary))
    members: dict[str, object] = {}
    for part in parts:
        _add(members, part, body)
    if FILE_BYTES not in members:
        raise BadDocument(f"it has no file '{FILE_FIELD}'")
    return members


def value_span(body: bytes, name: str) -> tuple[int, int]:
    """Where the value of a field stands in a form that was read before."""
    boundary = body[: body.index(b"\r\n")]
    return next((part.start, part.end) for part in _parts(body, boundary) if part.name == name)


def text_parts(body: bytes) -> tuple[FormPart, ...]:
    """The parts but the file of a form that was read before."""
    return tuple(part for part in _parts(body, body[: body.index(b"\r\n")]) if not part.is_file)


def _parts(body: bytes, boundary: bytes) -> Iterator[FormPart]:
    if not body.startswith(boundary + b"\r\n"):
        raise BadDocument("it does not begin with its boundary")
    stated = body.count(boundary)
    if stated > MAX_PARTS + 1:
        raise BadDocument(f"it has more than {MAX_PARTS} parts")
    delimiter = b"\r\n" + boundary
    start, passed, after = len(boundary) + 2, 1, b"\r\n"
    while after == b"\r\n":
        end = body.find(delimiter, start - 2)
        if end < 0:
            raise BadDocument("its last boundary is missing")
        yield _part(body, start, end)
        start = end + len(delimiter) + 2
        passed, after = passed + 1, body[start - 2 : start]
    if after != b"--" or body[start:] not in {b"", b"\r\n"} or stated != passed:
        raise BadDocument("a boundary stands where no part ends, or something stands behind one")


def _part(body: bytes, start: int, end: int) -> FormPart:
    head_end = body.find(b"\r\n\r\n", start, min(end, start + MAX_HEAD_BYTES))
    if head_end < 0:
        raise BadDocument("a part has no headers, or too long ones")
    name: str | None = None
    is_file = False
    for line in body[start:head_end].split(b"\r\n"):
        header, colon, value = line.partition(b":")
        if header.lower() == b"content-disposition" and colon and name is None:
            said = _DISPOSITION.fullmatch(value.strip(b" "))
            if said is None:
                raise BadDocument('the header \'Content-Disposition\' of a part is not name="..." and filename="..."')
            name, is_file = said[1].decode(), said[2] is not None
        elif header.lower() not in _PLAIN_HEADERS or not colon or b"\n" in line or b"\r" in line:
            raise BadDocument("a part has a header that uploads don't need")
    if name is None:
        raise BadDocument("a part has no name")
    states_length = b"\ncontent-length:" in b"\n" + body[start:head_end].lower()
    return FormPart(name, is_file, head_end + 4, end, states_length)


def _add(members: dict[str, object], part: FormPart, body: bytes) -> None:
    if part.is_file != (part.name == FILE_FIELD):
        raise BadDocument(f"its one file must be the part '{FILE_FIELD}', and that must be a file")
    is_taken = part.name in members or part.name in {FILE_BYTES, FILE_DIGEST}
    if is_taken and not part.name.endswith(_LIST_SUFFIX):
        raise BadDocument("a field is there twice, or is none of an upload's")
    members[part.name] = part.name
    if part.is_file:
        members[FILE_BYTES] = part.end - part.start
        beginning = body[part.start : min(part.end, part.start + DIGESTED_BYTES)]
        members[FILE_DIGEST] = hashlib.blake2b(beginning, digest_size=16).hexdigest()
    else:
        members[part.name] = _text(part, body)


def _text(part: FormPart, body: bytes) -> str | bool:
    if part.end - part.start > MAX_TEXT_BYTES:
        raise BadDocument(f"a field has more than {MAX_TEXT_BYTES} bytes")
    try:
        text = body[part.start : part.end].decode()
    except UnicodeDecodeError:
        raise BadDocument("a field is not UTF-8") from None
    if part.name != "stream":
        return text
    if text not in _FLAGS:  # engines take a "1" and a "yes" as well
        raise BadDocument("its field 'stream' must be true or false")
    return _FLAGS[text]
