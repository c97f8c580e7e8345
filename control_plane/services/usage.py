"""Usage records of gateways: each is counted once, however often it comes."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from control_plane.ports import Clock, Store
from control_plane.usage_sums import Group, UsageQuery, UsageSum, summed
from fleet.usage import UsageBatch, UsageReceipt, UsageRecord

_FORGOTTEN_AT_ONCE = 500
"""Ids that a batch drops beside twice its own number, so that their table does not grow and nobody waits for it."""
_PAGE = 500
_TOO_NEW = timedelta(days=1)
"""A gateway's clock may be a little ahead of midnight."""


class UsageService:
    """Counts records and tells sums.

    Ids are kept for the days of a window. A record of an older day is not counted, because nobody can say any more
    whether it was: so none is ever counted twice.
    """

    def __init__(self, *, store: Store, clock: Clock, window_days: int) -> None:
        self._store = store
        self._clock = clock
        self._window = timedelta(days=window_days)

    def take(self, batch: UsageBatch) -> UsageReceipt:
        """Count a batch; its records and their ids are stored together or not at all."""
        today = self._clock.now().date()
        first, last = today - self._window, today + _TOO_NEW
        taken = [record for record in batch.records if first <= record.day <= last]
        too_old = sum(record.day < first for record in batch.records)
        current = {record.id: record for record in reversed(taken)}  # of two with one id the first counts
        with self._store.write() as unit:
            known = unit.usage.known(current.keys()) if current else frozenset()
            new = [record for record_id, record in current.items() if record_id not in known]
            unit.usage.add(_days(new), summed(new))
            unit.usage.forget_before(first.isoformat(), 2 * len(new) + _FORGOTTEN_AT_ONCE)
        return UsageReceipt(
            stored=len(new),
            duplicates=len(taken) - len(new),
            too_old=too_old,
            too_new=len(batch.records) - len(taken) - too_old,
        )

    def page(self, query: UsageQuery, *, after: Group, limit: int) -> Sequence[UsageSum]:
        """Sums of groups above ``after``."""
        with self._store.read() as unit:
            return unit.usage.page(query, after=after, limit=limit)

    def every(self, query: UsageQuery) -> Iterator[UsageSum]:
        """All sums, page by page."""
        after: Group = ()
        while found := self.page(query, after=after, limit=_PAGE):
            yield from found
            after = found[-1].group


def _days(records: Sequence[UsageRecord]) -> dict[str, str]:
    return {record.id: record.day.isoformat() for record in records}
