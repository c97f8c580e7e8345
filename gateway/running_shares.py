"""What each tenant has at the engines of one pool, and who has more there than its share. Pure.

Engines never give back what they have begun. A tenant that may fill them whenever the others pause would make each of
these wait for its long prompts and answers, however fair the queue is; so a little of a pool is kept free of tenants
that have more than their share there already. A tenant that is alone has nobody to keep it free for.
"""

from collections import Counter
from dataclasses import dataclass


@dataclass(slots=True)
class _Running:
    cost: float
    weight: float
    requests: int = 0


class RunningShares:
    """The requests of one pool that have had their turn and have not ended."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}
        self._cost = 0.0
        self._weight = 0.0

    def __len__(self) -> int:
        """Tenants that have something there."""
        return len(self._running)

    @property
    def requests(self) -> int:
        """Of all tenants."""
        return sum(one.requests for one in self._running.values())

    def start(self, tenant: str, cost: float, weight: float) -> None:
        """One more; ``cost`` is the service that it is expected to take."""
        one = self._running.get(tenant)
        if one is None:
            one = self._running[tenant] = _Running(0.0, weight)
            self._weight += weight
        one.cost += cost
        one.requests += 1
        self._cost += cost

    def end(self, tenant: str, cost: float) -> None:
        """One less; ``cost`` as it was told at its start."""
        one = self._running[tenant]
        one.cost -= cost
        one.requests -= 1
        self._cost -= cost
        if not one.requests:
            del self._running[tenant]
            self._weight -= one.weight
        if not self._running:
            self._cost = self._weight = 0.0

    def part_of_others(self) -> float:
        """How much of what is there is of tenants that are not above their share: 0 = nothing."""
        if not self._cost:
            return 0.0
        below = sum(one.cost for one in self._running.values() if one.cost * self._weight <= self._cost * one.weight)
        return below / self._cost

    def is_above(self, tenant: str) -> bool:
        """Whether it has more than the mean of those that have something there, for their weights."""
        one = self._running.get(tenant)
        return one is not None and len(self._running) > 1 and one.cost * self._weight > self._cost * one.weight


class RunningModels:
    """The requests of each model that have had their turn and have not ended, by the endpoint that they went to."""

    def __init__(self) -> None:
        self._models: dict[str, Counter[str]] = {}

    @property
    def requests(self) -> int:
        """Of all models."""
        return sum(counts.total() for counts in self._models.values())

    def of(self, model: str) -> int:
        """Of one model."""
        counts = self._models.get(model)
        return 0 if counts is None else counts.total()

    def at(self, model: str, address: str) -> int:
        """Of one model, at one endpoint."""
        counts = self._models.get(model)
        return 0 if counts is None else counts[address]

    def start(self, model: str, address: str) -> None:
        """One more."""
        self._models.setdefault(model, Counter())[address] += 1

    def end(self, model: str, address: str) -> None:
        """One less."""
        counts = self._models[model]
        counts[address] -= 1
        if not counts[address]:
            del counts[address]
        if not counts:
            del self._models[model]
