"""Budgets that several gateways share: what a store of them must do, and one that does it in memory.

The contract of a script on Valkey or Redis (one hash for each key, so that `take` is one atomic call):

- ``KEYS[1]`` is the wish's key, ``ARGV`` its kind, limit, gateway, serial, take, least, give_back, owed and held. The
  moment is the server's own (``TIME``), so that gateways need not agree on it. It returns the amount granted.
  (`gateway.budget_scripts` adds a word for the server's memory, so that one that forgot grants nothing unseen.)
- A serial that is the gateway's last one for this key is answered as it was answered and changes nothing: a gateway
  that got no answer asks again, and nothing is taken or owed twice.
- Everything else is what `MemoryBudgets` does, kind by kind, in its order. Lua counts exactly below 2**53, so money,
  which is in picodollars here, is handed to it in nanodollars, rounded so that nobody gains.
- A hash expires by itself: ``flow`` and ``slots`` after an hour without a wish, ``stock`` 40 days after the last.

The store is never told how much of a grant was spent. What a gateway that dies had not spent is lost with it: a
minute's bucket fills up again, slots end with `SLOT_SECONDS`, of a day or month it is a 200th of the gateway's share.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

SLOT_SECONDS = 30.0
"""Slots of a gateway that was not heard of for so long are free again."""


_STOCK_SECONDS = 40 * 86400.0


class Kind(StrEnum):
    """How an amount that was taken comes back."""

    FLOW = "flow"
    """Evenly, the whole limit within a minute."""
    STOCK = "stock"
    """Never: the next window has a key of its own."""
    SLOTS = "slots"
    """When it is given back, or its gateway is not heard of."""


class Wish(NamedTuple):
    """What a gateway says about one budget; one that was not answered is said again unchanged."""

    key: str
    kind: Kind
    limit: int
    gateway: str
    """Of this process alone: one that starts again has another name, for its serials start again."""
    serial: int
    """Rises with each wish of this gateway for this key."""
    take: int
    """How much it wants."""
    least: int = 0
    """Less than this is of no use: two that each hold half of what both need would wait for each other."""
    give_back: int = 0
    """What it had been granted and did not spend."""
    owed: int = 0
    """What it spent without a grant, while it could not reach the store."""
    held: int = 0
    """Slots that it has, before this wish."""


class SharedBudgets(Protocol):
    """The store."""

    def take(self, wish: Wish, now: float) -> int | None:
        """What is granted of ``wish.take``, after what is given back and owed; ``None`` = it can't be reached."""


@dataclass(slots=True)
class _Budget:
    amount: float
    """``flow``: the level; ``stock``: what was taken; ``slots``: nothing."""
    at: float
    returnable: dict[str, float] = field(default_factory=dict)
    """``flow``: what each gateway may still give back."""
    slots: dict[str, tuple[int, float]] = field(default_factory=dict)
    """``slots``: how many each gateway has, and until when."""


class MemoryBudgets:
    """The store's contract, as a program; it also serves where all gateways are in one process."""

    def __init__(self) -> None:
        self._budgets: dict[tuple[str, Kind], _Budget] = {}
        self._answers: dict[tuple[str, Kind, str], tuple[int, int]] = {}

    def take(self, wish: Wish, now: float) -> int | None:
        """Serve one wish."""
        asker = (wish.key, wish.kind, wish.gateway)
        serial, granted = self._answers.get(asker, (0, 0))
        if wish.serial == serial:
            return granted
        full = wish.limit if wish.kind is Kind.FLOW else 0
        budget = self._budgets.setdefault((wish.key, wish.kind), _Budget(full, now))
        granted = _SERVE[wish.kind](budget, wish, now)
        self._answers[asker] = (wish.serial, granted)
        return granted

    def taken(self) -> dict[str, int]:
        """What was taken of each budget that does not come back."""
        stocks = ((key, budget) for (key, kind), budget in self._budgets.items() if kind is Kind.STOCK)
        return {key: int(budget.amount) for key, budget in stocks if budget.amount}

    def restore(self, taken: Mapping[str, int], now: float) -> None:
        """Go on from what was taken."""
        for key, amount in taken.items():
            if now - float(key.rpartition("/")[2]) < _STOCK_SECONDS:
                self._budgets[key, Kind.STOCK] = _Budget(amount, now)


def _flow(budget: _Budget, wish: Wish, now: float) -> int:
    """A token bucket whose holds are the gateways' grants: see `gateway.token_bucket` for why it drips over."""
    gained = max(0.0, now - budget.at) * wish.limit / 60
    budget.at = max(now, budget.at)
    budget.amount = min(float(wish.limit), budget.amount + gained)
    _drip_over(budget, wish.limit)
    returnable = budget.returnable.get(wish.gateway, 0.0)
    budget.amount += min(wish.give_back, returnable) - wish.owed
    granted = _granted(wish, int(budget.amount))
    budget.amount -= granted
    budget.returnable[wish.gateway] = max(0.0, returnable - wish.give_back) + granted
    return granted


def _drip_over(budget: _Budget, limit: int) -> None:
    excess = budget.amount + sum(budget.returnable.values()) - limit
    for gateway, amount in sorted(budget.returnable.items()):
        if excess <= 0:
            return
        budget.returnable[gateway] = max(0.0, amount - excess)
        excess -= amount


def _stock(budget: _Budget, wish: Wish, now: float) -> int:
    budget.amount = max(0, budget.amount - wish.give_back) + wish.owed
    granted = _granted(wish, wish.limit - int(budget.amount))
    budget.amount += granted
    return granted


def _slots(budget: _Budget, wish: Wish, now: float) -> int:
    others = sum(slots for name, (slots, until) in budget.slots.items() if name != wish.gateway and until > now)
    granted = _granted(wish, wish.limit - others - wish.held)
    budget.slots[wish.gateway] = (wish.held + granted, now + SLOT_SECONDS)
    return granted


def _granted(wish: Wish, left: int) -> int:
    granted = max(0, min(wish.take, left))
    return granted if granted >= wish.least else 0


_SERVE = {Kind.FLOW: _flow, Kind.STOCK: _stock, Kind.SLOTS: _slots}
