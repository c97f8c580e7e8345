"""What a hosted engine lets through by the minute, as the snapshot says: who is over it waits, or goes elsewhere. Pure.

One request is counted when it goes out, its tokens when it is over, since nobody knows them before: what several long
answers take beyond the limit keeps the arm closed until that, too, has drained.
"""

from collections.abc import Iterable

from fleet.snapshot import GatewayArm, HostedEndpoint
from gateway.arms import pool_of

_SECONDS = 60.0


class _Drain:
    """So many by the minute, evenly, and a minute's worth at once."""

    __slots__ = ("_at", "_level", "limit")

    def __init__(self, limit: int, now: float) -> None:
        self.limit = limit
        self._level = float(limit)
        self._at = now

    def take(self, amount: int, now: float) -> float:
        """Take it out, and say when there will be one more."""
        passed = max(0.0, now - self._at)
        self._level = min(float(self.limit), self._level + passed * self.limit / _SECONDS) - amount
        self._at = max(self._at, now)
        return now + max(0.0, 1.0 - self._level) * _SECONDS / self.limit


class HostedLimits:
    """The limits of all hosted engines, by the name that stands in the place of an address."""

    def __init__(self) -> None:
        self._requests: dict[str, _Drain] = {}
        self._tokens: dict[str, _Drain] = {}

    def replace(self, arms: Iterable[GatewayArm], now: float) -> None:
        """Other limits from now on; what was taken stays taken."""
        hosted = {pool_of(arm): arm.hosted for arm in arms if arm.hosted is not None}
        self._requests = _kept(self._requests, hosted, "requests_per_minute", now)
        self._tokens = _kept(self._tokens, hosted, "tokens_per_minute", now)

    def sent(self, name: str, now: float) -> float:
        """One request goes there; when it may get the next one."""
        return _taken(self._requests, name, 1, now)

    def used(self, name: str, tokens: int, now: float) -> float:
        """One request there is over; when it may get the next one."""
        return _taken(self._tokens, name, tokens, now)


def _taken(drains: dict[str, _Drain], name: str, amount: int, now: float) -> float:
    drain = drains.get(name)
    return now if drain is None else drain.take(amount, now)


def _kept(drains: dict[str, _Drain], hosted: dict[str, HostedEndpoint], field: str, now: float) -> dict[str, _Drain]:
    limits = {name: limit for name, one in hosted.items() if (limit := getattr(one, field)) is not None}
    same = {name: drain for name, drain in drains.items() if limits.get(name) == drain.limit}
    return {name: same.get(name) or _Drain(limit, now) for name, limit in limits.items()}
