"""Rows of the smaller tables: objects with a name and a spec, and the audit log."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Table, delete, insert, select, update

from control_plane.adapters import sql_tables as tables
from control_plane.records import StoredObject
from fleet.audit import AuditEntry, AuditEvent, ChainHead, extend

Touch = Callable[[], None]
"""Tells the unit that rows of a kind are about to change."""


def as_json(value: object) -> str:
    """JSON text for a column."""
    return json.dumps(value, separators=(",", ":"))


class ObjectRows:
    """Objects of one kind in their table."""

    def __init__(self, connection: Connection, table: Table, touch: Touch) -> None:
        self._connection = connection
        self._table = table
        self._touch = touch

    def get(self, name: str) -> StoredObject | None:
        """One object, or ``None``."""
        row = self._connection.execute(select(self._table).where(self._table.c.name == name)).mappings().first()
        return _object(row) if row else None

    def page(self, *, after: str, limit: int) -> Sequence[StoredObject]:
        """Objects with names above ``after``, ascending."""
        names = self._table.c.name
        query = select(self._table).where(names > after).order_by(names).limit(limit)
        return [_object(row) for row in self._connection.execute(query).mappings()]

    def insert(self, item: StoredObject) -> None:
        """Store a new one."""
        self._touch()
        self._connection.execute(insert(self._table).values(**_object_values(item)))

    def replace(self, item: StoredObject) -> None:
        """Store the next generation of an existing one."""
        self._touch()
        query = update(self._table).where(self._table.c.name == item.name).values(**_object_values(item))
        self._connection.execute(query)

    def delete(self, name: str) -> None:
        """Forget one."""
        self._touch()
        self._connection.execute(delete(self._table).where(self._table.c.name == name))


def _object_values(item: StoredObject) -> dict[str, Any]:
    return {
        "name": item.name,
        "generation": item.generation,
        "spec": as_json(item.spec),
        "created": item.created,
        "updated": item.updated,
    }


def _object(row: RowMapping) -> StoredObject:
    return StoredObject(
        name=row["name"],
        generation=row["generation"],
        spec=json.loads(row["spec"]),
        created=row["created"],
        updated=row["updated"],
    )


class AuditRows:
    """The append-only log."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append(self, entries: Sequence[AuditEntry]) -> Sequence[AuditEvent]:
        """Continue the chain."""
        if not entries:
            return ()
        events = extend(self.head(), entries)
        names = tuple(AuditEvent.model_fields)
        self._connection.execute(
            insert(tables.audit_events), [{name: getattr(event, name) for name in names} for event in events]
        )
        head = {"sequence": events[-1].sequence, "hash": events[-1].hash}
        self._connection.execute(update(tables.audit_head).values(**head))
        return events

    def page(self, *, after: int, limit: int) -> Sequence[AuditEvent]:
        """Events with sequences above ``after``, ascending."""
        sequences = tables.audit_events.c.sequence
        query = select(tables.audit_events).where(sequences > after).order_by(sequences).limit(limit)
        return [AuditEvent(**row) for row in self._connection.execute(query).mappings()]

    def head(self) -> ChainHead:
        """Where the chain ends."""
        row = self._connection.execute(select(tables.audit_head.c.sequence, tables.audit_head.c.hash)).one()
        return ChainHead(sequence=row.sequence, hash=row.hash)
