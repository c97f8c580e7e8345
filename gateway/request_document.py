"""The JSON body of a request, read strictly enough that an engine cannot read it otherwise."""

import json
from collections.abc import Mapping

MAX_PARTS = 50_000
"""Objects, lists and members of objects in one body. Millions of them fit into 8 MiB and would take seconds to read,
and nobody else's request is decided about meanwhile."""
MAX_TEXTS = 200_000
MAX_ITEMS = 1_000_000
"""Items of lists and members of objects; a prompt may be given as a list of token ids."""
MAX_DEPTH = 128
"""Objects and lists in one another: whoever looks through a document takes frames of the stack for each of them."""

_BLANKS = " \t\n\r"


class BadDocument(ValueError):
    """The body is not one JSON object; the message says why without quoting it."""


def parse_document(body: bytes) -> Mapping[str, object]:
    """The object in a request's body.

    A member that is named twice is refused: parsers differ on which one counts, so the model that was allowed need not
    be the one that an engine reads.
    """
    _refuse_costly(body)
    try:
        document = _decoded(body.decode().rstrip(_BLANKS))
    except BadDocument:
        raise
    except UnicodeDecodeError:
        raise BadDocument("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadDocument(f"line {error.lineno} column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise BadDocument("it is nested too deeply") from None
    except ValueError:
        raise BadDocument("a number in it is too long") from None
    if not isinstance(document, dict):
        raise BadDocument("it must be a JSON object")
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _is_too_deep(document):
        raise BadDocument(f"it is nested deeper than {MAX_DEPTH}")
    return document


def _is_too_deep(document: dict[str, object]) -> bool:
    level: list[object] = [document]
    for _ in range(MAX_DEPTH):
        holders = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list))
        level = [child for holder in holders for child in holder if type(child) is dict or type(child) is list]
        if not level:
            return False
    return True


def _decoded(text: str) -> object:
    """As the decoder's own method, which looks for blanks around the value first."""
    if text.startswith("{"):
        document, end = _DECODER.raw_decode(text)
        if end == len(text):
            return document
    return _DECODER.decode(text)


def _refuse_costly(body: bytes) -> None:
    """Refuse what would take long to read, in a time that the size of the body bounds."""
    if len(body) <= MAX_PARTS or len(body) - len(body.translate(None, b"{[:,")) <= MAX_PARTS:
        return  # as nearly all, at the price of one look at each byte of long ones
    if _parts(body) <= MAX_PARTS and body.count(b",") <= MAX_ITEMS:
        return
    # Most of it may stand in texts: without escapes, every second piece between quotes is outside of them.
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if unescaped.count(b'"') > 2 * MAX_TEXTS:
        raise BadDocument(f"it has more than {MAX_TEXTS} texts")
    outside = b"".join(unescaped.split(b'"')[::2])
    if _parts(outside) > MAX_PARTS:
        raise BadDocument(f"it has more than {MAX_PARTS} objects, lists and members")
    if outside.count(b",") > MAX_ITEMS:
        raise BadDocument(f"its lists have more than {MAX_ITEMS} items")


def _parts(body: bytes) -> int:
    return sum(map(body.count, (b"{", b"[", b":")))


def _unique_members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise BadDocument("a member of an object is named twice")
    return members


def _no_constant(_: str) -> object:
    raise BadDocument("NaN and Infinity are not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_members, parse_constant=_no_constant)
"""Made once: that costs as much as to read a short body."""
