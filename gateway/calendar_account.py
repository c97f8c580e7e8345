"""A budget of a calendar day or month in UTC: it is whole again at midnight, or on the first."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from gateway.accounts import Standing

_TRY_AGAIN_SECONDS = 1.0
_KEPT_WINDOWS = 2


class Period(StrEnum):
    """How long a budget lasts."""

    DAY = "day"
    MONTH = "month"


@dataclass(slots=True)
class _Window:
    start: float
    end: float
    used: int = 0
    held: int = 0


class CalendarAccount:
    """All that is charged to requests admitted in one day (or month) is within its limit, but for charges above holds.

    A request counts where it was admitted, also if it ends in the next window; what it is charged above its hold counts
    where it ends, so that it delays somebody. Two windows are kept: a clock that is set back a little over midnight
    finds what was used before.
    """

    __slots__ = ("_current", "_earlier", "_holds", "_limit", "_period")

    def __init__(self, limit: int, period: Period, now_unix_seconds: float) -> None:
        self._limit = limit
        self._period = period
        self._current = _Window(*window_of(period, now_unix_seconds))
        self._earlier: list[_Window] = []
        self._holds: dict[int, _Window] = {}

    @property
    def limit(self) -> int:
        """What a window has."""
        return self._limit

    def resize(self, limit: int, now: float) -> None:
        """Counts at once."""
        self._limit = limit

    def taken(self, now: float) -> tuple[float, int]:
        """The window's start, and what was charged or is held in it."""
        window = self._at(now)
        return window.start, window.used + window.held

    def restore(self, start: float, used: int, now: float) -> None:
        """Go on from a charge that was kept; that of another window is over."""
        window = self._at(now)
        if window.start == start:
            window.used = max(window.used, used)

    def wait(self, amount: int, now: float) -> float:
        """Until the window ends, or, where only running requests are in the way, until one may have ended."""
        window = self._at(now)
        if window.used + window.held + amount <= self._limit:
            return 0.0
        if amount > self._limit:
            return math.inf
        return _TRY_AGAIN_SECONDS if window.used + amount <= self._limit else window.end - now

    def hold(self, number: int, amount: int, now: float) -> None:
        """Hold it in the window of this moment."""
        window = self._holds[number] = self._at(now)
        window.held += amount

    def settle(self, number: int, amount: int, charged: int, now: float) -> None:
        """Charge it where it was held, and what goes beyond the hold where it ends."""
        window = self._holds.pop(number)
        window.held -= amount
        window.used += min(amount, charged)
        if charged > amount:
            self._at(now).used += charged - amount

    def standing(self, now: float) -> Standing:
        """What is left of the window."""
        window = self._at(now)
        taken = window.used + window.held
        return Standing(self._limit, max(0, self._limit - taken), window.end - now if taken else 0.0)

    def _at(self, now: float) -> _Window:
        if self._current.start <= now < self._current.end:
            return self._current
        found = next((window for window in self._earlier if window.start <= now < window.end), None)
        kept = [window for window in (self._current, *self._earlier) if window is not found]
        self._earlier = kept[: _KEPT_WINDOWS - 1]
        self._current = found or _Window(*window_of(self._period, now))
        return self._current


def window_of(period: Period, now_unix_seconds: float) -> tuple[float, float]:
    """When the day or month of a moment begins, and when the next one does."""
    day = datetime.fromtimestamp(now_unix_seconds, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period is Period.DAY:
        return day.timestamp(), (day + timedelta(days=1)).timestamp()
    first = day.replace(day=1)
    return first.timestamp(), (first + timedelta(days=31)).replace(day=1).timestamp()
