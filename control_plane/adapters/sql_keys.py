"""Rows of keys and tokens: API keys of tenants, public keys of token issuers, tokens of the admin API."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, insert, select, update

from control_plane.adapters import sql_tables as tables
from control_plane.adapters.sql_rows import Touch, as_json
from control_plane.records import EndingKey, FetchedKeys, Scope, StoredKey, StoredToken


class KeyRows:
    """Keys of tenants."""

    def __init__(self, connection: Connection, touch: Touch) -> None:
        self._connection = connection
        self._touch = touch

    def get(self, name: str) -> StoredKey | None:
        """One key, or ``None``."""
        row = self._connection.execute(select(tables.keys).where(tables.keys.c.name == name)).mappings().first()
        return _key(row) if row else None

    def page(self, *, after: str, limit: int, tenant: str | None = None) -> Sequence[StoredKey]:
        """Keys with names above ``after``, ascending; of one tenant if given."""
        names = tables.keys.c.name
        query = select(tables.keys).where(names > after).order_by(names).limit(limit)
        if tenant is not None:
            query = query.where(tables.keys.c.tenant == tenant)
        return [_key(row) for row in self._connection.execute(query).mappings()]

    def insert(self, key: StoredKey) -> None:
        """Store a new one."""
        self._touch()
        self._connection.execute(insert(tables.keys).values(**_key_values(key)))

    def replace(self, key: StoredKey) -> None:
        """Store the next generation of an existing one."""
        self._touch()
        self._connection.execute(update(tables.keys).where(tables.keys.c.name == key.name).values(**_key_values(key)))

    def delete(self, name: str) -> None:
        """Forget one."""
        self._touch()
        self._connection.execute(delete(tables.keys).where(tables.keys.c.name == name))


def _key(row: RowMapping) -> StoredKey:
    ending = tuple(EndingKey(**item) for item in json.loads(row["ending"]))
    return StoredKey(**{**row, "models": tuple(json.loads(row["models"])), "ending": ending})


def _key_values(key: StoredKey) -> dict[str, Any]:
    values = {name: getattr(key, name) for name in tables.keys.c.keys()}  # noqa: SIM118 - not a mapping
    ending = as_json([asdict(item) for item in key.ending])
    return values | {"models": as_json(key.models), "ending": ending}


class FetchedKeyRows:
    """Public keys of token issuers that were read from an address."""

    def __init__(self, connection: Connection, touch: Touch) -> None:
        self._connection = connection
        self._touch = touch

    def all(self) -> Sequence[FetchedKeys]:
        """What is kept of each issuer that has an address, by name."""
        query = select(tables.fetched_keys).order_by(tables.fetched_keys.c.issuer)
        rows = self._connection.execute(query).mappings()
        return [FetchedKeys(**{**row, "keys": tuple(json.loads(row["keys"]))}) for row in rows]

    def put(self, fetched: FetchedKeys) -> None:
        """Store or replace."""
        self.delete(fetched.issuer)
        values = {**asdict(fetched), "keys": as_json(fetched.keys)}
        self._connection.execute(insert(tables.fetched_keys).values(**values))

    def delete(self, issuer: str) -> None:
        """Forget those of an issuer."""
        self._touch()
        self._connection.execute(delete(tables.fetched_keys).where(tables.fetched_keys.c.issuer == issuer))


class TokenRows:
    """Tokens of the admin API."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def by_prefix(self, prefix: str) -> StoredToken | None:
        """The token that starts so, or ``None``."""
        return self._one(select(tables.tokens).where(tables.tokens.c.prefix == prefix))

    def put(self, token: StoredToken) -> StoredToken | None:
        """Store or replace by name; gives what was replaced."""
        before = self._one(select(tables.tokens).where(tables.tokens.c.name == token.name))
        if before is not None:
            self._connection.execute(delete(tables.tokens).where(tables.tokens.c.name == token.name))
        values = {name: getattr(token, name) for name in ("name", "prefix", "sha256", "created")}
        self._connection.execute(insert(tables.tokens).values(**values, scope=token.scope.value))
        return before

    def _one(self, query: Any) -> StoredToken | None:  # noqa: ANN401 - SQLAlchemy's select has no short type
        row = self._connection.execute(query).mappings().first()
        return StoredToken(**{**row, "scope": Scope(row["scope"])}) if row else None
