"""Usage in its two tables: ids that were counted, and sums of each day."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, delete, func, insert, select, tuple_, update

from control_plane.adapters import sql_tables as tables
from control_plane.usage_sums import AMOUNTS, Amounts, Dimension, Group, UsageQuery, UsageSum
from fleet.budget import PICODOLLARS_PER_USD

_DIMENSIONS = tuple(dimension.value for dimension in Dimension)


class UsageRows:
    """Counted ids and sums."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def known(self, ids: Collection[str]) -> frozenset[str]:
        """Those of the ids that were counted."""
        column = tables.usage_ids.c.id
        return frozenset(self._connection.execute(select(column).where(column.in_(ids))).scalars())

    def add(self, days: Mapping[str, str], sums: Mapping[Group, Amounts]) -> None:
        """Note ids with their days, and add to the sums of the finest groups."""
        if days:
            rows = [{"id": record_id, "day": day} for record_id, day in days.items()]
            self._connection.execute(insert(tables.usage_ids), rows)
        for group, amounts in sums.items():
            self._add(group, amounts)

    def forget_before(self, day: str, at_most: int) -> None:
        """Drop some ids of days before this one; sums stay."""
        ids = tables.usage_ids.c
        some = select(ids.id).where(ids.day < day).limit(at_most)
        self._connection.execute(delete(tables.usage_ids).where(ids.id.in_(some.scalar_subquery())))

    def page(self, query: UsageQuery, *, after: Group, limit: int) -> Sequence[UsageSum]:
        """Groups above ``after``, ascending by their values."""
        columns = [tables.usage_days.c[dimension.value] for dimension in query.group_by]
        sums = [func.sum(tables.usage_days.c[name]).label(name) for name in AMOUNTS]
        asked = _filtered(select(*columns, *sums), query).group_by(*columns).order_by(*columns).limit(limit)
        if after:
            asked = asked.where(tuple_(*columns) > tuple_(*after))
        found = []
        for row in self._connection.execute(asked):
            values = tuple(row)
            numbers = zip(AMOUNTS, values[len(columns) :], strict=True)
            amounts = Amounts(**{name: int(number) for name, number in numbers})  # PostgreSQL gives decimals
            found.append(UsageSum(tuple(map(str, values[: len(columns)])), amounts))
        return found

    def _add(self, group: Group, amounts: Amounts) -> None:
        table = tables.usage_days
        named = dict(zip(_DIMENSIONS, group, strict=True))
        added = {name: table.c[name] + getattr(amounts, name) for name in AMOUNTS}
        rest = added["cost_picodollars"]
        added["cost_usd"] = added["cost_usd"] + rest // PICODOLLARS_PER_USD
        added["cost_picodollars"] = rest % PICODOLLARS_PER_USD
        is_this = [table.c[name] == value for name, value in named.items()]
        done = self._connection.execute(update(table).where(*is_this).values(**added))
        if done.rowcount == 0:
            values = {name: getattr(amounts, name) for name in AMOUNTS}
            self._connection.execute(insert(table).values(**named, **values))


def _filtered(asked: Select[*tuple[Any, ...]], query: UsageQuery) -> Select[*tuple[Any, ...]]:
    days = tables.usage_days.c
    stated = (
        (query.tenant, days.tenant == (query.tenant or "")),
        (query.model, days.model == (query.model or "")),
        (query.first_day, days.day >= (query.first_day or "")),
        (query.last_day, days.day <= (query.last_day or "")),
    )
    return asked.where(*(condition for value, condition in stated if value is not None))
