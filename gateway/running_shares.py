"""What each tenant of a pool was served lately, and who got more than its share; what engines have by model. Pure.

Engines never give back what they have begun. A tenant that may fill them whenever the others pause would make each of
these wait for its long prompts and answers, however fair the queue is; so a little of a pool is kept free of tenants
that got more than their share lately. A tenant that is alone has nobody to keep it free for.
"""

import math
from collections import Counter
from dataclasses import dataclass

FADE_SECONDS = 20.0
_MOST_EXPONENT = 100.0


@dataclass(slots=True)
class _Running:
    weight: float
    service: float = 0.0
    """In the unit of the moment at which counting began, so that what fades need not be touched."""
    requests: int = 0


class RunningShares:
    """The tenants that have requests at the engines of one pool."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}
        self._service = 0.0
        self._weight = 0.0
        self._since = 0.0

    def __len__(self) -> int:
        """Tenants that have something there."""
        return len(self._running)

    def start(self, tenant: str, service: float, weight: float, now: float) -> None:
        """One more request, of the service that it is expected to take."""
        one = self._running.get(tenant)
        if one is None:
            one = self._running[tenant] = _Running(weight)
            self._weight += weight
        one.requests += 1
        self._add(one, service, now)

    def end(self, tenant: str, correction: float, now: float) -> None:
        """One less; ``correction`` = how much more service it took than was expected."""
        one = self._running[tenant]
        self._add(one, correction, now)
        one.requests -= 1
        if not one.requests:
            del self._running[tenant]
            self._weight = sum(other.weight for other in self._running.values())
            self._add_up()

    def is_above(self, tenant: str) -> bool:
        """Whether it got more than the mean of those that have something there, for their weights."""
        one = self._running.get(tenant)
        return one is not None and len(self._running) > 1 and self._has_more(one)

    def part_of_others(self) -> float:
        """How much of the service went to tenants that are not above their share: 0 = nothing."""
        if self._service <= 0:
            return 0.0
        return max(0.0, sum(one.service for one in self._running.values() if not self._has_more(one)) / self._service)

    def _has_more(self, one: _Running) -> bool:
        return one.service * self._weight > self._service * one.weight

    def _add(self, one: _Running, service: float, now: float) -> None:
        exponent = (now - self._since) / FADE_SECONDS
        if exponent > _MOST_EXPONENT:
            for other in self._running.values():
                other.service *= math.exp(-exponent)
            self._service *= math.exp(-exponent)
            self._since, exponent = now, 0.0
        added = service * math.exp(exponent)
        one.service = max(0.0, one.service + added)
        if added >= 0:
            self._service += added
        else:
            self._add_up()

    def _add_up(self) -> None:
        """Anew: taking off what is much larger than the rest would leave nothing but rounding."""
        self._service = sum(one.service for one in self._running.values())


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
