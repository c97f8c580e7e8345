"""API keys of tenants: shown once, kept as a hash; a key is made and deleted, never changed."""

import secrets
from collections.abc import Sequence

from control_plane.errors import Conflict, Invalid, NotFound
from control_plane.ports import Clock, Store, UnitOfWork
from control_plane.records import Actor, Document, Kind, StoredKey
from control_plane.services.audit import entry
from control_plane.services.moments import iso
from control_plane.services.preconditions import Precondition, check
from fleet.api_keys import KEY_MARK, RANDOM_BYTES, mint
from fleet.manifest import Problem

GENERATION = 1
"""Of every key, since none is ever changed."""


class KeyService:
    """Makes, lists and deletes keys."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def get(self, name: str) -> StoredKey:
        """One key; raises `NotFound`."""
        with self._store.read() as unit:
            return _existing(unit, name)

    def page(self, *, after: str, limit: int, tenant: str | None) -> Sequence[StoredKey]:
        """Keys with names above ``after``, ascending; of one tenant if given."""
        with self._store.read() as unit:
            return unit.keys.page(after=after, limit=limit, tenant=tenant)

    def create(
        self, wished_name: str | None, tenant: str, expires_unix_seconds: int | None, actor: Actor
    ) -> tuple[StoredKey, str]:
        """A new key and its text, which is not kept; without a name it gets one; raises `Conflict`, `Invalid`."""
        now = self._clock.now()
        if expires_unix_seconds is not None and expires_unix_seconds <= now.timestamp():
            raise Invalid("the key would have ended already", [Problem("/expires", "give a moment in the future")])
        name = wished_name or f"{tenant[:50]}-{secrets.token_hex(4)}"
        minted = mint(KEY_MARK, secrets.token_bytes(RANDOM_BYTES))
        key = StoredKey(name, tenant, minted.prefix, minted.sha256, iso(now), expires_unix_seconds)
        with self._store.write() as unit:
            if unit.keys.get(name) is not None:
                raise Conflict(f"key '{name}' exists; keys are never changed: delete it or choose another name")
            if unit.tenants.get(tenant) is None:
                problem = Problem("/tenant", f"no tenant is named '{tenant}'; create it first")
                raise Invalid("the key has no tenant", [problem])
            unit.keys.insert(key)
            unit.audit.append([entry(actor, "create", Kind.KEY, name, at=now, before=None, after=_audited(key))])
        return key, minted.text

    def delete(self, name: str, demand: Precondition, actor: Actor, *, is_dry_run: bool) -> None:
        """The key stops working; raises `NotFound` and as `preconditions.check` does."""
        with self._store.write() as unit:
            key = _existing(unit, name)
            check(Kind.KEY, name, GENERATION, demand, is_dry_run=is_dry_run)
            unit.keys.delete(name)
            moment = self._clock.now()
            unit.audit.append([entry(actor, "delete", Kind.KEY, name, at=moment, before=_audited(key), after=None)])
            if is_dry_run:
                unit.discard()


def refuse_tenant_with_keys(unit: UnitOfWork, tenant: str) -> None:
    """A tenant with keys stays; raises `Conflict`."""
    held = unit.keys.page(after="", limit=2, tenant=tenant)
    if held:
        more = " and others" if len(held) > 1 else ""
        raise Conflict(f"tenant '{tenant}' has the key '{held[0].name}'{more}; delete the keys first")


def _audited(key: StoredKey) -> Document:
    return {"tenant": key.tenant, "prefix": key.prefix, "sha256": key.sha256, "expires": key.expires_unix_seconds}


def _existing(unit: UnitOfWork, name: str) -> StoredKey:
    key = unit.keys.get(name)
    if key is None:
        raise NotFound("key", name)
    return key
