"""Public keys of token issuers that stand at an address: read again and again, the last good ones are kept."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from control_plane.ports import Clock, KeySetError, KeySets, Meter, Store
from control_plane.records import Document, FetchedKeys, Kind, StoredObject, system_actor
from control_plane.services.audit import entry
from control_plane.services.known_models import all_objects
from control_plane.services.moments import iso
from fleet.token_issuer import keys_in

_ACTOR = system_actor("fetch-keys")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One reading of an address."""

    issuer: str
    url: str
    keys: tuple[Document, ...]
    problem: str | None


class IssuerKeys:
    """Reads key sets and keeps them."""

    def __init__(
        self, *, store: Store, source: KeySets, clock: Clock, meter: Meter, every_seconds: float, retry_seconds: float
    ) -> None:
        self._store = store
        self._source = source
        self._clock = clock
        self._meter = meter
        self._every_seconds = every_seconds
        self._retry_seconds = retry_seconds
        self._tried: dict[tuple[str, str], tuple[datetime, bool]] = {}
        """When each issuer's address was last read, and whether that went well."""

    def of(self, stored: StoredObject) -> FetchedKeys | None:
        """What is kept from the address of an issuer, if it still has this address."""
        with self._store.read() as unit:
            return kept_for(stored, unit.fetched_keys.all())

    def look(self) -> int:
        """One round: read what is due; gives how many addresses were read. Nothing is locked while it waits."""
        with self._store.read() as unit:
            issuers = all_objects(unit.token_issuers)
        addresses = [(item.name, item.spec["jwks_url"]) for item in issuers if "jwks_url" in item.spec]
        self._tried = {place: tried for place, tried in self._tried.items() if place in addresses}
        due = [place for place in addresses if self._is_due(place)]
        for place in due:
            attempt = self._read(*place)
            self._tried[place] = (self._clock.now(), attempt.problem is None)
            self._keep(attempt)
        self._meter.issuers_without_fresh_keys(sum(not is_well for _, is_well in self._tried.values()))
        return len(due)

    def _is_due(self, place: tuple[str, str]) -> bool:
        tried = self._tried.get(place)
        if tried is None:
            return True
        pause = self._every_seconds if tried[1] else self._retry_seconds
        return (self._clock.now() - tried[0]).total_seconds() >= pause

    def _read(self, issuer: str, url: str) -> Attempt:
        try:
            keys = keys_in(self._source.read(url))
        except (KeySetError, ValueError) as error:
            return Attempt(issuer, url, (), str(error))
        return Attempt(issuer, url, tuple(key.model_dump(mode="json", exclude_none=True) for key in keys), None)

    def _keep(self, attempt: Attempt) -> None:
        now = self._clock.now()
        with self._store.write() as unit:
            stored = unit.token_issuers.get(attempt.issuer)
            if stored is None or stored.spec.get("jwks_url") != attempt.url:
                return  # it was changed meanwhile
            before = kept_for(stored, unit.fetched_keys.all())
            after = _after(attempt, before, iso(now))
            unit.fetched_keys.put(after)
            was = [] if before is None else list(before.keys)
            if list(after.keys) != was:
                change = entry(
                    _ACTOR, "fetch", Kind.TOKEN_ISSUER, attempt.issuer, at=now,
                    before={"keys": was}, after={"keys": list(after.keys)},
                )  # fmt: skip
                unit.audit.append([change])


def kept_for(stored: StoredObject, kept: Sequence[FetchedKeys]) -> FetchedKeys | None:
    """What was read for an issuer, from the address that it has now."""
    url = stored.spec.get("jwks_url")
    return next((item for item in kept if item.issuer == stored.name and item.url == url), None)


def _after(attempt: Attempt, before: FetchedKeys | None, now: str) -> FetchedKeys:
    if attempt.problem is None:
        return FetchedKeys(attempt.issuer, attempt.url, attempt.keys, now, None)
    if before is None:
        return FetchedKeys(attempt.issuer, attempt.url, (), None, attempt.problem)
    return replace(before, problem=attempt.problem)
