"""A budget by the minute: a bucket that holds a minute's worth and refills evenly."""

import math
from collections import OrderedDict

from gateway.accounts import Standing

_SECONDS = 60


class TokenBucket:
    """In any span of ``t`` seconds at most ``limit * (1 + t / 60)`` is charged, but for charges above their holds.

    What a request held and did not use comes back, and with long requests that is where a bucket goes wrong: if it has
    filled up meanwhile, what comes back from several of them would be a second burst. So the level and all that may
    still come back never exceed the limit together: what would drip over is taken from the oldest hold.
    """

    __slots__ = ("_filled_at", "_level", "_limit", "_returnable", "_returnable_sum")

    def __init__(self, limit: int, now: float) -> None:
        self._limit = limit
        self._level = float(limit)
        self._filled_at = now
        self._returnable: OrderedDict[int, float] = OrderedDict()
        self._returnable_sum = 0.0

    @property
    def limit(self) -> int:
        """A minute's worth."""
        return self._limit

    @property
    def level(self) -> float:
        """What it held when it was last looked at; below 0 it is in debt."""
        return self._level

    def resize(self, limit: int, now: float) -> None:
        """A smaller limit counts at once, a larger one fills at its own pace."""
        self._fill(now)
        self._limit = limit
        self._level = min(self._level, float(limit))
        self._take_what_drips_over()

    def restore(self, level: float, at: float) -> None:
        """Go on from the level of another moment."""
        self._level = min(level, float(self._limit))
        self._filled_at = at

    def wait(self, amount: int, now: float) -> float:
        """Seconds until the amount is there; infinite if the bucket is too small for it."""
        if now > self._filled_at:
            self._fill(now)
        if amount <= self._level:
            return 0.0
        if amount > self._limit or not self._limit:
            return math.inf
        return (amount - self._level) * _SECONDS / self._limit

    def hold(self, number: int, amount: int, now: float) -> None:
        """Take it out; until the request is over it may come back."""
        self._level -= amount
        self._returnable[number] = float(amount)
        self._returnable_sum += amount

    def settle(self, number: int, amount: int, charged: int, now: float) -> None:
        """Put back what was not used and has not dripped over, or take out what was used beyond the hold."""
        if now > self._filled_at:
            self._fill(now)
        returnable, unused = self._returnable.pop(number, 0.0), amount - charged
        self._returnable_sum = self._returnable_sum - returnable if self._returnable else 0.0
        level = self._level + (unused if unused < returnable else returnable)
        self._level = level if level < self._limit else float(self._limit)  # sums of parts of tokens are rounded

    def standing(self, now: float) -> Standing:
        """How full it is."""
        if now > self._filled_at:
            self._fill(now)
        limit, level = self._limit, self._level
        reset = (limit - level) * _SECONDS / limit if limit else 0.0
        return Standing(limit, int(level) if level > 0 else 0, reset)

    def _fill(self, now: float) -> None:
        """A clock that goes back gives nothing away."""
        gained = (now - self._filled_at) * self._limit / _SECONDS
        if gained <= 0:
            return
        self._filled_at = now
        level = self._level + gained
        self._level = level if level < self._limit else float(self._limit)
        if self._returnable and self._level + self._returnable_sum > self._limit:
            self._take_what_drips_over()

    def _take_what_drips_over(self) -> None:
        excess = self._level + self._returnable_sum - self._limit
        while excess > 0 and self._returnable:
            number, amount = next(iter(self._returnable.items()))
            if amount > excess:
                self._returnable[number] = amount - excess
                self._returnable_sum -= excess
                return
            del self._returnable[number]
            self._returnable_sum = self._returnable_sum - amount if self._returnable else 0.0
            excess -= amount
