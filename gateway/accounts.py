"""What a budget is kept in: amounts are held when a request is admitted and charged when it ends.

Whatever an account is made of, a hold that was refused changed nothing, and what is charged above the hold is debt that
delays the next request. Requests are known by numbers that are never used twice.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Standing(NamedTuple):
    """How an account stands."""

    limit: int
    remaining: int
    """What can be held now; never below 0."""
    reset_seconds: float
    """Until all of it can be held again, if nothing else is."""


class Account(Protocol):
    """One budget."""

    @property
    def limit(self) -> int:
        """The most that it can ever hold."""

    def resize(self, limit: int, now: float) -> None:
        """Another limit from now on; what was held and charged stays."""

    def wait(self, amount: int, now: float) -> float:
        """Seconds until this much can be held: 0 = now, infinite = never."""

    def hold(self, number: int, amount: int, now: float) -> None:
        """Hold an amount for a request; `wait` must just have said 0 for the same moment."""

    def settle(self, number: int, amount: int, charged: int, now: float) -> None:
        """The request that held ``amount`` is over and is charged this much."""

    def standing(self, now: float) -> Standing:
        """How it stands."""


@dataclass(slots=True)
class ConcurrencyAccount:
    """How many requests run at once."""

    limit: int
    running: int = 0

    def resize(self, limit: int, now: float) -> None:
        """Those that run beyond a smaller limit may end."""
        self.limit = limit

    def wait(self, amount: int, now: float) -> float:
        """Nobody knows when a request ends: one second is worth another try."""
        if self.running + amount <= self.limit:
            return 0.0
        return 1.0 if amount <= self.limit else math.inf

    def hold(self, number: int, amount: int, now: float) -> None:
        """One more runs."""
        self.running += amount

    def settle(self, number: int, amount: int, charged: int, now: float) -> None:
        """One less runs, whatever it was charged."""
        self.running -= amount

    def standing(self, now: float) -> Standing:
        """How many more may run."""
        return Standing(self.limit, max(0, self.limit - self.running), 1.0 if self.running else 0.0)


@dataclass(slots=True)
class ClosedAccount:
    """A budget that nobody can count in: money, for a model without a price. The default is no."""

    limit: int

    def resize(self, limit: int, now: float) -> None:
        """It stays closed."""
        self.limit = limit

    def wait(self, amount: int, now: float) -> float:
        """Until a price is stated."""
        return math.inf

    def hold(self, number: int, amount: int, now: float) -> None:
        """It never comes to this."""

    def settle(self, number: int, amount: int, charged: int, now: float) -> None:
        """It never comes to this."""

    def standing(self, now: float) -> Standing:
        """Nothing can be held."""
        return Standing(self.limit, 0, 0.0)
