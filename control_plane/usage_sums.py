"""What was used, summed up: the groups that people ask for, and the amounts of each."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum

from fleet.budget import PICODOLLARS_PER_USD
from fleet.usage import UsageRecord

_ESTIMATED = frozenset({"counted", "reserved"})
_UNANSWERED = frozenset({"failed", "cancelled"})


class Dimension(StrEnum):
    """What usage can be told apart by."""

    TENANT = "tenant"
    MODEL = "model"
    DAY = "day"
    DEPLOYMENT = "deployment"
    KEY = "key"


Group = tuple[str, ...]
"""Values of some dimensions, in the order in which they were asked for; a day is ISO 8601."""


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Which usage is asked for; ``None`` = any."""

    group_by: tuple[Dimension, ...] = (Dimension.TENANT, Dimension.MODEL, Dimension.DAY)
    tenant: str | None = None
    model: str | None = None
    first_day: str | None = None
    last_day: str | None = None
    """It counts too."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """Sums over requests."""

    requests: int = 0
    unanswered_requests: int = 0
    """The engine gave an error, or none could be asked: they have no tokens."""
    estimated_requests: int = 0
    """Their tokens were counted or reserved, because the engine did not come to state them."""
    unpriced_requests: int = 0
    """Their model had no price: they are not in the cost."""
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: int = 0
    """Whole dollars of the cost."""
    cost_picodollars: int = 0
    """The rest of the cost, below a dollar once it is stored."""

    def plus(self, other: "Amounts") -> "Amounts":
        """Both together."""
        added = {name: getattr(self, name) + getattr(other, name) for name in AMOUNTS}
        dollars, added["cost_picodollars"] = divmod(added["cost_picodollars"], PICODOLLARS_PER_USD)
        added["cost_usd"] += dollars
        return Amounts(**added)

    @property
    def cost(self) -> str:
        """The cost in dollars as a decimal number: a binary one would round it."""
        dollars, rest = divmod(self.cost_usd * PICODOLLARS_PER_USD + self.cost_picodollars, PICODOLLARS_PER_USD)
        return f"{dollars}.{rest:012d}".rstrip("0").rstrip(".")


AMOUNTS = tuple(field.name for field in fields(Amounts))


@dataclass(frozen=True, slots=True)
class UsageSum:
    """The amounts of one group."""

    group: Group
    amounts: Amounts


def group_of(record: UsageRecord) -> Group:
    """The finest group of a record, by every dimension in the order of `Dimension`."""
    return (record.tenant, record.model, record.day.isoformat(), record.deployment, record.key)


def summed(records: Iterable[UsageRecord]) -> dict[Group, Amounts]:
    """Records by their finest groups."""
    found: dict[Group, Amounts] = {}
    for record in records:
        group = group_of(record)
        found[group] = found.get(group, Amounts()).plus(_amounts(record))
    return found


def _amounts(record: UsageRecord) -> Amounts:
    dollars, rest = divmod(record.cost_picodollars or 0, PICODOLLARS_PER_USD)
    return Amounts(
        requests=1,
        unanswered_requests=int(record.basis in _UNANSWERED),
        estimated_requests=int(record.basis in _ESTIMATED),
        unpriced_requests=int(record.cost_picodollars is None),
        input_tokens=record.input_tokens,
        cached_tokens=record.cached_tokens,
        output_tokens=record.output_tokens,
        cost_usd=dollars,
        cost_picodollars=rest,
    )
