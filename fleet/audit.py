"""The audit log as values: a chain in which each event's hash covers the one before it.

Whoever holds the events can check the chain without trusting who stores them; the head tells a log that was cut off.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleet.canonical import canonical_json, sha256_hex
from fleet.value import Value

GENESIS = "0" * 64
"""What the first event names as the hash before it."""


class AuditEntry(Value):
    """What happened: who did what to which object, why, and what the object was before and after."""

    time: str
    """ISO 8601 in UTC."""
    actor: str
    action: str
    """``<kind>.<verb>``, as in ``deployment.replace``."""
    kind: str
    name: str
    reason: str | None = None
    """What the actor gave as a reason; ``None`` = none was given."""
    request_id: str | None = None
    """``None`` = a loop did it, not a request."""
    before: str | None = None
    """The digest of the object before; ``None`` = it did not exist."""
    after: str | None = None
    """The digest of the object after; ``None`` = it does not exist any more."""


_ENTRY_FIELDS = tuple(AuditEntry.model_fields)


class AuditEvent(AuditEntry):
    """An entry at its place in the chain."""

    sequence: int
    """Counts from 1 without a gap."""
    previous: str
    """The hash of the event before."""
    hash: str


class ChainHead(Value):
    """Where a chain ends: the last sequence and its hash."""

    sequence: int = 0
    hash: str = GENESIS


class ChainBreak(Value):
    """The first place where a chain does not hold, and why."""

    sequence: int
    message: str


def event_hash(entry: AuditEntry, *, sequence: int, previous: str) -> str:
    """sha256 over the canonical JSON of an entry, its sequence and the hash before it."""
    return _hash(_fields(entry), sequence, previous)


def extend(head: ChainHead, entries: Iterable[AuditEntry]) -> tuple[AuditEvent, ...]:
    """The events that continue a chain, in order."""
    events = []
    sequence, previous = head.sequence, head.hash
    for entry in entries:
        sequence += 1
        fields = _fields(entry)
        current = _hash(fields, sequence, previous)
        events.append(AuditEvent(**fields, sequence=sequence, previous=previous, hash=current))
        previous = current
    return tuple(events)


def head_of(events: Iterable[AuditEvent], start: ChainHead | None = None) -> ChainHead:
    """Where the chain stands after some events."""
    head = start or ChainHead()
    for event in events:
        head = ChainHead(sequence=event.sequence, hash=event.hash)
    return head


def first_break(events: Iterable[AuditEvent], *, start: ChainHead | None = None) -> ChainBreak | None:
    """The first event that does not continue the chain from ``start`` (the beginning), or ``None`` if all do."""
    head = start or ChainHead()
    for event in events:
        message = _fault(event, head)
        if message is not None:
            return ChainBreak(sequence=event.sequence, message=message)
        head = ChainHead(sequence=event.sequence, hash=event.hash)
    return None


def cut_off(reached: ChainHead, stated: ChainHead) -> ChainBreak | None:
    """What is wrong when a checked chain does not end where the log says that it ends."""
    if reached == stated:
        return None
    message = (
        f"the log states {stated.sequence} events ending in {stated.hash[:12]}, "
        f"but {reached.sequence} were read, ending in {reached.hash[:12]}"
    )
    return ChainBreak(sequence=reached.sequence, message=message)


def _fault(event: AuditEvent, head: ChainHead) -> str | None:
    if event.sequence != head.sequence + 1:
        return f"expected event {head.sequence + 1}, found {event.sequence}: an event is missing, double or moved"
    if event.previous != head.hash:
        return f"names {event.previous[:12]} as the hash before it, but that is {head.hash[:12]}"
    if event.hash != event_hash(event, sequence=event.sequence, previous=event.previous):
        return "its content does not give its hash: the event was changed"
    return None


def _fields(entry: AuditEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in _ENTRY_FIELDS}


def _hash(fields: Mapping[str, Any], sequence: int, previous: str) -> str:
    return sha256_hex(canonical_json({**fields, "sequence": sequence, "previous": previous}))
