"""Usage as it is kept: the ids that were counted, and the sums."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from control_plane.usage_sums import Amounts, Group, UsageQuery, UsageSum


class Usage(Protocol):
    """Counted ids and sums; both change in one transaction, so a record is counted once."""

    def known(self, ids: Collection[str]) -> frozenset[str]:
        """Those of the ids that were counted."""
        ...

    def add(self, days: Mapping[str, str], sums: Mapping[Group, Amounts]) -> None:
        """Note ids with their days, and add to the sums of the finest groups."""
        ...

    def forget_before(self, day: str, at_most: int) -> None:
        """Drop some ids of days before this one; sums stay."""
        ...

    def page(self, query: UsageQuery, *, after: Group, limit: int) -> Sequence[UsageSum]:
        """Groups above ``after``, ascending by their values; an empty one = from the start."""
        ...
