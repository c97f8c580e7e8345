"""Tokens and keys as text: high entropy, a prefix that names them, a checksum that finds typing errors.

``<mark><32 random characters><7 check characters>``, all in the small alphabet of base32. Keys of people's own making
are none of these: where such a key is known by its hash it counts all the same, so look first and ask `form_of` why a
key is not known.
"""

import base64
import hashlib
import hmac
import zlib
from dataclasses import dataclass
from enum import StrEnum

from fleet.snapshot import GatewayKey

TOKEN_MARK = "eh_"
KEY_MARK = "ehk_"
RANDOM_BYTES = 20
_RANDOM_CHARACTERS = 32
_CHECKSUM_CHARACTERS = 7
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Minted:
    """A new secret, and the two parts of it that are kept."""

    text: str
    prefix: str
    sha256: str

    def __repr__(self) -> str:
        return f"Minted(prefix={self.prefix!r})"


class Form(StrEnum):
    """What a text looks like, before anybody looks it up."""

    WHOLE = "whole"
    """It can be one that was minted here."""
    MISTYPED = "mistyped"
    """It was meant to be one: a character was changed, left out or added."""
    OTHER = "other"
    """It was never minted here."""


def mint(mark: str, randomness: bytes) -> Minted:
    """A token or key made of 20 random bytes."""
    if len(randomness) != RANDOM_BYTES:
        raise ValueError(f"{len(randomness)} random bytes; expected {RANDOM_BYTES}")
    body = base64.b32encode(randomness).decode().lower()
    text = f"{mark}{body}{_checksum(mark + body)}"
    return Minted(text=text, prefix=prefix_of(text, mark), sha256=sha256_of(text))


def form_of(text: str, mark: str) -> Form:
    """What a text looks like; it takes the same time wherever its check characters differ."""
    if not text.startswith(mark):
        return Form.OTHER
    if len(text) != len(mark) + _RANDOM_CHARACTERS + _CHECKSUM_CHARACTERS:
        return Form.MISTYPED
    expected, stated = _checksum(text[:-_CHECKSUM_CHARACTERS]), text[-_CHECKSUM_CHARACTERS:]
    return Form.WHOLE if hmac.compare_digest(expected.encode(), _bytes(stated)) else Form.MISTYPED


def is_well_formed(text: str, mark: str) -> bool:
    """Whether a text can be a token or key at all: its mark, its length and its checksum."""
    return form_of(text, mark) is Form.WHOLE


def prefix_of(text: str, mark: str) -> str:
    """The part that is shown and looked up by."""
    return text[: len(mark) + _SHOWN]


def sha256_of(text: str) -> str:
    """What is kept of a secret; with 160 random bits behind it a plain hash can't be reversed."""
    return hashlib.sha256(_bytes(text)).hexdigest()


def is_same(text: str, sha256: str) -> bool:
    """Whether a text has a hash, in constant time."""
    return hmac.compare_digest(sha256_of(text), sha256.lower())


def rotated(
    key: GatewayKey, sha256: str, *, now_unix_seconds: int, overlap_seconds: int
) -> tuple[GatewayKey, GatewayKey]:
    """The key that ends after the overlap, never later than it would have, and the one that takes its place.

    Until then both are valid. The new one keeps the id, the scopes and the end that the old one had.
    """
    if overlap_seconds < 0:
        raise ValueError(f"an overlap of {overlap_seconds} s; expected 0 s or more")
    end = now_unix_seconds + overlap_seconds
    stated = key.expires_unix_seconds
    ending = key.model_copy(update={"expires_unix_seconds": end if stated is None else min(end, stated)})
    return ending, key.model_copy(update={"sha256": sha256, "generation": key.generation + 1})


def _bytes(text: str) -> bytes:
    """Whatever a client sends has bytes, even half of a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")


def _checksum(text: str) -> str:
    return base64.b32encode(zlib.crc32(_bytes(text)).to_bytes(4, "big")).decode().lower().rstrip("=")
