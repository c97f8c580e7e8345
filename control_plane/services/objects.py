"""Objects with a name and a spec, from waivers to routes: they share their whole life."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from control_plane.errors import NotFound
from control_plane.ports import Clock, Objects, Store, UnitOfWork
from control_plane.records import Actor, Document, Kind, StoredObject
from control_plane.services.audit import entry
from control_plane.services.changes import Difference, Verb, differences, verb_of
from control_plane.services.moments import iso
from control_plane.services.preconditions import Precondition, check


@dataclass(frozen=True, slots=True)
class ObjectOutcome:
    """What a change did, or would do."""

    verb: Verb
    stored: StoredObject | None
    """``None`` after a deletion."""
    differences: tuple[Difference, ...]


_WORDS = {Kind.TRIAGE: "triage entry", Kind.TOKEN_ISSUER: "token issuer", Kind.OUTPUT_FILTER: "output filter"}


class ObjectService:
    """Reads and changes the objects of one kind."""

    def __init__(
        self,
        *,
        kind: Kind,
        rows: Callable[[UnitOfWork], Objects],
        store: Store,
        clock: Clock,
        before_put: Callable[[UnitOfWork, str, Document], None] = lambda _unit, _name, _spec: None,
        before_delete: Callable[[UnitOfWork, str], None] = lambda _unit, _name: None,
    ) -> None:
        self._kind = kind
        self._rows = rows
        self._store = store
        self._clock = clock
        self._before_put = before_put
        self._before_delete = before_delete

    @property
    def _word(self) -> str:
        return _WORDS.get(self._kind, self._kind.value.lower())

    def get(self, name: str) -> StoredObject:
        """One object; raises `NotFound`."""
        with self._store.read() as unit:
            return self._existing(unit, name)

    def page(self, *, after: str, limit: int) -> Sequence[StoredObject]:
        """Objects with names above ``after``, ascending."""
        with self._store.read() as unit:
            return self._rows(unit).page(after=after, limit=limit)

    def put(self, name: str, spec: Document, demand: Precondition, actor: Actor, *, is_dry_run: bool) -> ObjectOutcome:
        """Create or replace; raises as `preconditions.check` and the check of the kind do."""
        with self._store.write() as unit:
            rows = self._rows(unit)
            before = rows.get(name)
            check(self._kind, name, before.generation if before else None, demand, is_dry_run=is_dry_run)
            self._before_put(unit, name, spec)
            was = before.spec if before else None
            verb = verb_of(was, spec)
            if is_dry_run:
                unit.discard()
            if before is not None and verb == "unchanged":
                return ObjectOutcome(verb, before, ())
            now = self._clock.now()
            if before is None:
                stored = StoredObject(name, unit.next_generation(self._kind, name), spec, iso(now), iso(now))
                rows.insert(stored)
            else:
                stored = replace(before, generation=before.generation + 1, spec=spec, updated=iso(now))
                rows.replace(stored)
            unit.audit.append([entry(actor, verb, self._kind, name, at=now, before=was, after=spec)])
            return ObjectOutcome(verb, stored, differences(was, spec))

    def delete(self, name: str, demand: Precondition, actor: Actor, *, is_dry_run: bool) -> ObjectOutcome:
        """Forget one; raises as `preconditions.check` does, and `NotFound`."""
        with self._store.write() as unit:
            before = self._existing(unit, name)
            check(self._kind, name, before.generation, demand, is_dry_run=is_dry_run)
            self._before_delete(unit, name)
            self._rows(unit).delete(name)
            unit.bury(self._kind, name, before.generation)
            moment = self._clock.now()
            unit.audit.append([entry(actor, "delete", self._kind, name, at=moment, before=before.spec, after=None)])
            if is_dry_run:
                unit.discard()
            return ObjectOutcome("delete", None, differences(before.spec, None))

    def _existing(self, unit: UnitOfWork, name: str) -> StoredObject:
        found = self._rows(unit).get(name)
        if found is None:
            raise NotFound(self._word, name)
        return found
