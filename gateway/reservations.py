"""Requests that were admitted and have not ended: what each of them holds, and when nobody waits for it any longer."""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gateway.budget_lines import BudgetLine
from gateway.token_usage import TokenUsage


class Demand(NamedTuple):
    """What a request may come to."""

    input_tokens: int
    output_tokens: int
    """The most that it can get, all its sequences together."""
    is_output_stated: bool = True
    """Whether the client asked for that much: otherwise it may be cut to what the budgets ever hold."""


@dataclass(slots=True)
class Reservation:
    """One request on its way."""

    number: int
    tenant: str
    model: str
    input_tokens: int
    output_tokens: int
    """The most that its holds pay for."""
    lines: tuple[BudgetLine, ...]
    """The budgets that it counts in."""
    amounts: tuple[int, ...]
    """What each of them holds for it."""
    expires_at: float

    def settle(self, usage: TokenUsage, now: float) -> None:
        """Charge every budget what the usage comes to in it; where requests are counted, the request."""
        used, cached, output = usage.input_tokens, usage.cached_tokens, usage.output_tokens
        for (_, _, account, tariff), amount in zip(self.lines, self.amounts, strict=True):
            charged = amount if tariff is None else tariff.charge(used, cached, output)
            account.settle(self.number, amount, charged, now)

    def settle_whole(self, now: float) -> None:
        """Charge every budget what it holds."""
        for line, amount in zip(self.lines, self.amounts, strict=True):
            line.account.settle(self.number, amount, amount, now)

    def release(self, now: float) -> None:
        """Charge nothing."""
        for line, amount in zip(self.lines, self.amounts, strict=True):
            line.account.settle(self.number, amount, 0, now)


class Basis(StrEnum):
    """What a request was charged by; the value is a metric's label."""

    USAGE = "usage"
    """The engine's own figures."""
    COUNTED = "counted"
    """What was sent on, and the estimate of the input."""
    RESERVED = "reserved"
    """All that was held: nobody knows how it ended."""
    FAILED = "failed"
    """The engine answered with an error: the request counts, its tokens don't."""
    CANCELLED = "cancelled"
    """No engine got it: nothing counts."""


class Settled(NamedTuple):
    """A request that is over, for the record."""

    number: int
    tenant: str
    model: str
    usage: TokenUsage
    basis: Basis


class Reservations:
    """The requests on their way, in the order in which they expire.

    Each lives for the same time after it began or was last heard of, so the order of these moments is the order of the
    ends.
    """

    def __init__(self, lifetime_seconds: float) -> None:
        self._lifetime_seconds = lifetime_seconds
        self._running: OrderedDict[int, Reservation] = OrderedDict()
        self._last_number = 0

    def __len__(self) -> int:
        return len(self._running)

    def next_number(self) -> int:
        """One that was never used."""
        self._last_number += 1
        return self._last_number

    def expiry(self, now: float) -> float:
        """When a request that is heard of now is given up."""
        return now + self._lifetime_seconds

    def add(self, reservation: Reservation) -> None:
        """It is on its way."""
        self._running[reservation.number] = reservation

    def renew(self, number: int, now: float) -> bool:
        """It was heard of; ``False`` = it is over."""
        reservation = self._running.get(number)
        if reservation is None:
            return False
        reservation.expires_at = max(reservation.expires_at, self.expiry(now))
        self._running.move_to_end(number)
        return True

    def end(self, number: int) -> Reservation | None:
        """It is over; ``None`` = it was already."""
        return self._running.pop(number, None)

    def expired(self, now: float) -> Iterator[Reservation]:
        """Give up those that were not heard of for too long."""
        while self._running:
            reservation = next(iter(self._running.values()))
            if reservation.expires_at > now:
                return
            del self._running[reservation.number]
            yield reservation
