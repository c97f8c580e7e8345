"""Tokens and keys as text: high entropy, a prefix that names them, a checksum that finds typing errors."""

import base64
import hashlib
import hmac
import zlib
from dataclasses import dataclass

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


def mint(mark: str, randomness: bytes) -> Minted:
    """A token or key made of 20 random bytes."""
    if len(randomness) != RANDOM_BYTES:
        raise ValueError(f"{len(randomness)} random bytes; expected {RANDOM_BYTES}")
    body = base64.b32encode(randomness).decode().lower()
    text = f"{mark}{body}{_checksum(mark + body)}"
    return Minted(text=text, prefix=prefix_of(text, mark), sha256=sha256_of(text))


def is_well_formed(text: str, mark: str) -> bool:
    """Whether a text can be a token or key at all: its mark, its length and its checksum."""
    if not text.startswith(mark) or len(text) != len(mark) + _RANDOM_CHARACTERS + _CHECKSUM_CHARACTERS:
        return False
    return hmac.compare_digest(_checksum(text[:-_CHECKSUM_CHARACTERS]).encode(), text[-_CHECKSUM_CHARACTERS:].encode())


def prefix_of(text: str, mark: str) -> str:
    """The part that is shown and looked up by."""
    return text[: len(mark) + _SHOWN]


def sha256_of(text: str) -> str:
    """What is kept of a secret; with 160 random bits behind it a plain hash can't be reversed."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_same(text: str, sha256: str) -> bool:
    """Whether a text has a hash, in constant time."""
    return hmac.compare_digest(sha256_of(text), sha256)


def _checksum(text: str) -> str:
    return base64.b32encode(zlib.crc32(text.encode()).to_bytes(4, "big")).decode().lower().rstrip("=")
