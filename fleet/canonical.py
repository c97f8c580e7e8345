"""Canonical JSON and the digests over it: equal values give equal bytes on every machine."""

import hashlib
import json

from pydantic import BaseModel

IDENTITY_HEX_DIGITS = 32
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical_json(value: BaseModel | object) -> bytes:
    """UTF-8 JSON with sorted keys and without blanks; defaults are written out, ``None`` members are left out."""
    plain = value.model_dump(mode="json", exclude_none=True) if isinstance(value, BaseModel) else value
    return _ENCODER.encode(plain).encode()


def sha256_hex(data: bytes) -> str:
    """The 64 hex digits of sha256."""
    return hashlib.sha256(data).hexdigest()


def digest(value: BaseModel | object) -> str:
    """``sha256:`` and 64 hex digits over the canonical JSON of a value."""
    return f"sha256:{sha256_hex(canonical_json(value))}"
