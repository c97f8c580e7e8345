"""A small deterministic tokenizer: pieces of about four characters that join to the text again."""

import re
import zlib
from collections.abc import Iterable
from itertools import islice

_PIECE = re.compile(r" ?[^\W\d_]{1,4}| ?\d{1,2}| +(?= )|[\s\S]")


def pieces_of(text: str, at_most: int | None = None) -> tuple[str, ...]:
    """Split a text into pieces; joined they are the text. With ``at_most`` the text is read no further than that."""
    return tuple(found.group() for found in islice(_PIECE.finditer(text), at_most))


def token_id(piece: str) -> int:
    """Return the id of a piece, the same in every process."""
    return zlib.crc32(piece.encode("utf-8", "surrogatepass"))


def token_ids(pieces: Iterable[str]) -> tuple[int, ...]:
    """Return the ids of several pieces."""
    return tuple(token_id(piece) for piece in pieces)
