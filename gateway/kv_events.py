"""Reads the messages in which engines say which blocks of prompts they hold. Pure.

Messages hold token ids and cache salts: they are the tenants' data, so no error and no ``repr`` shows them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from gateway.errors import GatewayError

_STORED = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
           "extra_keys", "group_idx")  # fmt: skip
_REMOVED = ("block_hashes", "medium", "group_idx")
_FIELDS: Mapping[str, tuple[str, ...]] = {"BlockStored": _STORED, "BlockRemoved": _REMOVED, "AllBlocksCleared": ()}
"""The order of the fields in the older shape, where an event is an array that begins with its kind."""

BlockHash = int | bytes
_Kind = TypeVar("_Kind")


class KvEventError(GatewayError):
    """A message that is none; what it holds is not told."""


@dataclass(frozen=True, slots=True)
class BlocksStored:
    """An engine holds blocks that follow each other."""

    hashes: tuple[BlockHash, ...] = field(repr=False)
    parent: BlockHash | None = field(repr=False)
    """``None`` = the first block begins a prompt."""
    tokens: tuple[int, ...] = field(repr=False)
    block_tokens: int
    medium: str = ""
    lora_name: str | None = None
    extra_keys: tuple[object, ...] = field(default=(), repr=False)
    """Per block what is hashed beside tokens: adapter, media, cache salt."""


@dataclass(frozen=True, slots=True)
class BlocksRemoved:
    """An engine no longer holds blocks."""

    hashes: tuple[BlockHash, ...] = field(repr=False)
    medium: str = ""


@dataclass(frozen=True, slots=True)
class AllCleared:
    """An engine holds nothing."""


KvEvent = BlocksStored | BlocksRemoved | AllCleared


@dataclass(frozen=True, slots=True)
class KvEventBatch:
    """One message of an engine."""

    at_unix_seconds: float
    events: tuple[KvEvent, ...]
    unread: int = 0
    """Events of kinds, or of groups of layers, that say nothing about prefixes of full attention."""


def read_batch(payload: bytes) -> KvEventBatch:
    """The events of one message, in both shapes: maps with names, and arrays in the order of the fields."""
    try:
        batch: object = msgspec.msgpack.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise KvEventError("a KV event message is no msgpack") from error
    parts = [batch.get("ts"), batch.get("events")] if isinstance(batch, dict) else batch
    if not isinstance(parts, list) or len(parts) < 2 or not isinstance(parts[1], list):
        raise KvEventError("a KV event message must be a list of a time and a list of events")
    at = parts[0]
    if not isinstance(at, int | float):
        raise KvEventError("a KV event message must begin with its time in seconds")
    events = [_event(event) for event in parts[1]]
    known = tuple(event for event in events if event is not None)
    return KvEventBatch(float(at), known, len(events) - len(known))


def _event(event: object) -> KvEvent | None:
    fields = _named(event)
    kind = fields.get("type")
    if fields.get("group_idx") not in (None, 0):
        return None
    if kind == "BlockStored":
        return _stored(fields)
    if kind == "BlockRemoved":
        return BlocksRemoved(_hashes(fields), _text(fields, "medium") or "")
    return AllCleared() if kind == "AllBlocksCleared" else None


def _named(event: object) -> Mapping[str, object]:
    if isinstance(event, dict):
        return event
    if isinstance(event, list) and event and isinstance(event[0], str):
        return {"type": event[0]} | dict(zip(_FIELDS.get(event[0], ()), event[1:], strict=False))
    raise KvEventError("a KV event must be a map, or a list that begins with its kind")


def _stored(fields: Mapping[str, object]) -> BlocksStored:
    hashes = _hashes(fields)
    tokens: tuple[int, ...] = _list(fields, "token_ids", _are_tokens)
    size = fields.get("block_size")
    if type(size) is not int or size < 1 or len(tokens) != size * len(hashes):
        raise KvEventError("a KV event must hold block_size tokens for each of its blocks")
    parent = fields.get("parent_block_hash")
    if parent is not None and not _is_hash(parent):
        raise KvEventError("parent_block_hash of a KV event must be a number, bytes or nil")
    extra = fields.get("extra_keys")
    return BlocksStored(
        hashes,
        parent if isinstance(parent, int | bytes) else None,
        tokens,
        size,
        _text(fields, "medium") or "",
        _text(fields, "lora_name"),
        tuple(extra) if isinstance(extra, list) else (),
    )


def _hashes(fields: Mapping[str, object]) -> tuple[BlockHash, ...]:
    return _list(fields, "block_hashes", _are_hashes)


def _list(fields: Mapping[str, object], name: str, are_right: Callable[[list[_Kind]], bool]) -> tuple[_Kind, ...]:
    value = fields.get(name)
    if not isinstance(value, list) or not are_right(value):
        raise KvEventError(f"{name} of a KV event is missing or of another kind than engines send")
    return tuple(value)


def _text(fields: Mapping[str, object], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) else None


def _is_hash(value: object) -> bool:
    return type(value) is int or isinstance(value, bytes)


def _are_tokens(values: list[int]) -> bool:
    """A message has thousands: they are looked at all at once."""
    return not values or (set(map(type, values)) == {int} and min(values) >= 0 and max(values) < 2**32)


def _are_hashes(values: list[BlockHash]) -> bool:
    return set(map(type, values)) <= {int, bytes}
