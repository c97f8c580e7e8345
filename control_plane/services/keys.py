"""API keys of tenants: shown once, kept as a hash; a key is made, rotated and deleted, never changed otherwise."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from control_plane.errors import Conflict, Invalid, NotFound
from control_plane.ports import Clock, Store, UnitOfWork
from control_plane.records import Actor, Document, EndingKey, Kind, StoredKey
from control_plane.services.audit import entry
from control_plane.services.known_models import check_models
from control_plane.services.moments import iso
from control_plane.services.preconditions import Precondition, check
from fleet.api_keys import KEY_MARK, RANDOM_BYTES, Minted, mint
from fleet.manifest import Problem

LONGEST_OVERLAP_SECONDS = 90 * 86_400
MOST_ENDING = 4
"""Earlier generations of one key that may be in use at once."""


@dataclass(frozen=True, slots=True)
class KeyWish:
    """What somebody wants a key to be."""

    tenant: str
    name: str | None = None
    """``None`` = the server gives one."""
    expires_unix_seconds: int | None = None
    models: tuple[str, ...] = ()
    pins_arms: bool = False


class KeyService:
    """Makes, lists, rotates and deletes keys."""

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

    def create(self, wish: KeyWish, actor: Actor) -> tuple[StoredKey, str]:
        """A new key and its text, which is not kept; raises `Conflict`, `Invalid`."""
        now = self._clock.now()
        expires = wish.expires_unix_seconds
        if expires is not None and expires <= now.timestamp():
            raise Invalid("the key would have ended already", [Problem("/expires", "give a moment in the future")])
        name = wish.name or f"{wish.tenant[:50]}-{secrets.token_hex(4)}"
        minted, moment = _minted(), iso(now)
        with self._store.write() as unit:
            if unit.keys.get(name) is not None:
                raise Conflict(f"key '{name}' exists; rotate it, delete it or choose another name")
            if unit.tenants.get(wish.tenant) is None:
                problem = Problem("/tenant", f"no tenant is named '{wish.tenant}'; create it first")
                raise Invalid("the key has no tenant", [problem])
            check_models(unit, [(f"/models/{place}", model) for place, model in enumerate(wish.models)])
            generation = unit.next_generation(Kind.KEY, name)
            key = StoredKey(
                name, wish.tenant, minted.prefix, minted.sha256, moment, expires, moment,
                generation=generation, models=wish.models, pins_arms=wish.pins_arms,
            )  # fmt: skip
            unit.keys.insert(key)
            unit.audit.append([entry(actor, "create", Kind.KEY, name, at=now, before=None, after=_audited(key))])
        return key, minted.text

    def rotate(
        self, name: str, overlap_seconds: int, demand: Precondition, actor: Actor, *, is_dry_run: bool
    ) -> tuple[StoredKey, str]:
        """The key's next generation and its text; each earlier one ends after the overlap, or earlier if it would have.

        Raises `NotFound`, `Conflict`, and as `preconditions.check` does.
        """
        now = self._clock.now()
        minted, moment = _minted(), int(now.timestamp())
        with self._store.write() as unit:
            key = _existing(unit, name)
            check(Kind.KEY, name, key.generation, demand, is_dry_run=is_dry_run)
            if key.expires_unix_seconds is not None and key.expires_unix_seconds <= moment:
                raise Conflict(f"key '{name}' has expired; a rotated one would have too: make another key")
            ending = _ending(key, moment, moment + overlap_seconds)
            if len(ending) > MOST_ENDING:
                message = f"key '{name}' has {MOST_ENDING} earlier generations that have not ended yet"
                raise Conflict(f"{message}; rotate with an overlap of 0 seconds to end them now")
            after = replace(
                key,
                generation=key.generation + 1,
                prefix=minted.prefix,
                sha256=minted.sha256,
                updated=iso(now),
                ending=ending,
            )
            unit.keys.replace(after)
            audited = entry(actor, "rotate", Kind.KEY, name, at=now, before=_audited(key), after=_audited(after))
            unit.audit.append([audited])
            if is_dry_run:
                unit.discard()
        return after, minted.text

    def delete(self, name: str, demand: Precondition, actor: Actor, *, is_dry_run: bool) -> None:
        """All generations of the key stop working; raises `NotFound` and as `preconditions.check` does."""
        with self._store.write() as unit:
            key = _existing(unit, name)
            check(Kind.KEY, name, key.generation, demand, is_dry_run=is_dry_run)
            unit.keys.delete(name)
            unit.bury(Kind.KEY, name, key.generation)
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


def _minted() -> Minted:
    return mint(KEY_MARK, secrets.token_bytes(RANDOM_BYTES))


def _ending(key: StoredKey, now: int, end: int) -> tuple[EndingKey, ...]:
    """What goes on beside the next generation, the newest first."""
    own_end = end if key.expires_unix_seconds is None else min(end, key.expires_unix_seconds)
    current = EndingKey(key.generation, key.prefix, key.sha256, own_end)
    earlier = (replace(item, ends_unix_seconds=min(end, item.ends_unix_seconds)) for item in key.ending)
    return tuple(item for item in (current, *earlier) if item.ends_unix_seconds > now)


def _audited(key: StoredKey) -> Document:
    return {
        "tenant": key.tenant,
        "generation": key.generation,
        "prefix": key.prefix,
        "sha256": key.sha256,
        "expires": key.expires_unix_seconds,
        "models": list(key.models),
        "pins_arms": key.pins_arms,
        "ending": [asdict(item) for item in key.ending],
    }


def _existing(unit: UnitOfWork, name: str) -> StoredKey:
    key = unit.keys.get(name)
    if key is None:
        raise NotFound("key", name)
    return key
