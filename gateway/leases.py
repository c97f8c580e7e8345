"""One gateway's part of shared budgets: what it holds comes out of leases that the store granted beforehand. No I/O.

A request never waits for the store unless its lease is short. Whoever can wait asks `Leases.wishes`, brings each wish
to the store, hands the answer to `Leases.answer` and reserves again; a timer does the same for all, to have something
at hand. Without an answer (`None`) a gateway is alone: it goes on within its share, the limit divided by the gateways
that are known, and what it spent so is owed to the store later. So while the store is there no more than the limit is
ever granted, and while it is lost no gateway spends more than its share; what had been granted before comes on top.
There is no state without a limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakValueDictionary

from gateway.accounts import Account
from gateway.budget_lines import Key, Unit
from gateway.budget_store import Wish
from gateway.calendar_account import Period
from gateway.slot_lease import SlotLease
from gateway.token_lease import Share, TokenLease

_PERIODS = {Unit.TOKENS_PER_DAY: Period.DAY, Unit.USD_PER_MONTH: Period.MONTH}


class Lease(Account, Protocol):
    """An account that is filled by a store."""

    @property
    def is_alone(self) -> bool:
        """Whether it knows that the store can't be reached."""

    def wish(self, now: float) -> Wish | None:
        """What the store should be told; ``None`` = nothing."""

    def answer(self, wish: Wish, granted: int | None, now: float) -> None:
        """What the store said; ``None`` = it could not be reached."""

    def share_with(self, share: Share) -> None:
        """Other gateways are known from now on."""

    def debt(self, epoch: str, now: float) -> Wish | None:
        """What a store that has forgotten everything should be told; ``None`` = nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish, and the lease that has it."""

    lease: Lease
    wish: Wish


class Leases:
    """Makes the accounts of `Budgets` and keeps them filled; what no budget needs any longer is forgotten."""

    def __init__(self, gateway: str, share: Share) -> None:
        self._gateway = gateway
        self._share = share
        self._leases: dict[str, WeakValueDictionary[Key, TokenLease | SlotLease]] = {}

    def account(self, key: Key, limit: int, now: float) -> Account:
        """A new lease, with nothing in it."""
        tenant, model, unit = key
        name = f"{tenant}/{unit.name.lower()}/{model or ''}"
        if unit is Unit.CONCURRENT_REQUESTS:
            lease: TokenLease | SlotLease = SlotLease(name, limit, self._gateway, self._share)
        else:
            lease = TokenLease(name, limit, self._gateway, self._share, _PERIODS.get(unit), now)
        self._leases.setdefault(tenant, WeakValueDictionary())[key] = lease
        return lease

    def share_with(self, share: Share) -> None:
        """Other gateways are known from now on."""
        self._share = share
        for lease in self._of(None):
            lease.share_with(share)

    def wishes(self, now: float, tenant: str | None = None) -> tuple[Asked, ...]:
        """What the store should be told, of one tenant or of all."""
        asked = ((lease, lease.wish(now)) for lease in self._of(tenant))
        return tuple(Asked(lease, wish) for lease, wish in asked if wish is not None)

    def debts(self, epoch: str, now: float) -> tuple[Wish, ...]:
        """What a store that has forgotten everything should be told before it is asked for anything."""
        debts = (lease.debt(epoch, now) for lease in self._of(None))
        return tuple(debt for debt in debts if debt is not None)

    def answer(self, asked: Asked, granted: int | None, now: float) -> None:
        """What the store said."""
        asked.lease.answer(asked.wish, granted, now)

    def _of(self, tenant: str | None) -> Iterator[TokenLease | SlotLease]:
        for name in tuple(self._leases) if tenant is None else (tenant,):
            leases = tuple(self._leases.get(name, {}).values())
            yield from leases
            if not leases:
                self._leases.pop(name, None)
