"""The audit log: what is written beside each change, and its check."""

from collections.abc import Sequence
from datetime import datetime

from control_plane.ports import Store
from control_plane.records import Actor, Document, Kind
from control_plane.services.moments import iso
from fleet.audit import AuditEntry, AuditEvent, ChainBreak, ChainHead, cut_off, first_break, head_of
from fleet.canonical import digest

_PAGE = 5_000


def entry(
    actor: Actor,
    verb: str,
    kind: Kind,
    name: str,
    *,
    at: datetime,
    before: Document | None,
    after: Document | None,
    reason: str | None = None,
) -> AuditEntry:
    """What one change leaves in the log: digests only, so that the log holds no content."""
    return AuditEntry(
        time=iso(at),
        actor=actor.name,
        action=f"{kind.value.lower()}.{verb}",
        kind=kind.value,
        name=name,
        reason=reason if reason is not None else actor.reason,
        request_id=actor.request_id,
        before=None if before is None else digest(before),
        after=None if after is None else digest(after),
    )


class AuditLog:
    """Reading and checking the log."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(self, *, after: int, limit: int) -> tuple[Sequence[AuditEvent], ChainHead]:
        """Events above a sequence, and where the chain ends at that moment."""
        with self._store.read() as unit:
            return unit.audit.page(after=after, limit=limit), unit.audit.head()

    def head(self) -> ChainHead:
        """Where the chain ends now."""
        with self._store.read() as unit:
            return unit.audit.head()

    def verify(self) -> ChainBreak | None:
        """The first place where the whole chain does not hold, or ``None``."""
        head = ChainHead()
        with self._store.read() as unit:
            stated = unit.audit.head()
            while events := unit.audit.page(after=head.sequence, limit=_PAGE):
                broken = first_break(events, start=head)
                if broken is not None:
                    return broken
                head = head_of(events, head)
        return cut_off(head, stated)
