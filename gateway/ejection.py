"""Which endpoints get no requests for a while because they failed, and how they come back. Pure.

An endpoint that failed several times in a row is ejected for a time that grows while it keeps failing. Afterwards it
gets one request, the probe; what comes of that one decides. Of a pool at most half is ejected: when everything
fails, the endpoints are hardly to blame, and somebody has to be asked.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

DEFAULT_MOST_REQUESTS = 4096
"""At one endpoint at once: a circuit breaker for engines that hang, far above what engines run."""
_NEVER = float("-inf")


@dataclass(frozen=True, slots=True)
class EjectionSettings:
    """When and for how long."""

    failures: int = 5
    """In a row: connections that fail, answers of 500 and above, answers that break off or come too late."""
    first_seconds: float = 5.0
    longest_seconds: float = 300.0
    probe_seconds: float = 30.0
    """After so long without a word about a probe (its client may have left) another one goes out."""


@dataclass(slots=True)
class _Sick:
    """What is held against one endpoint."""

    failures: int = 0
    times: int = 0
    """How often it was ejected since it was last well for long."""
    until: float = _NEVER
    """While it is ejected, and until its probe has come back well."""
    seconds: float = 0.0
    """The last ejection's."""
    is_ejected: bool = False
    probed_at: float = _NEVER
    well_since: float = _NEVER


class Ejections:
    """The endpoints that something is held against."""

    def __init__(self, settings: EjectionSettings | None = None) -> None:
        self._settings = settings or EjectionSettings()
        self._sick: dict[str, _Sick] = {}
        self._paused: dict[str, float] = {}

    def usable(self, pool: Sequence[str], now: float) -> list[str]:
        """Those of a pool that may get a request: all but those that asked for a pause, and at most half ejected."""
        left = [name for name in pool if self._paused.get(name, now) <= now] if self._paused else list(pool)
        if not self._sick:
            return left
        out = [name for name in left if self._is_out(name, now)]
        out.sort(key=lambda name: (-self._sick[name].times, name))
        del out[len(left) // 2 :]
        return [name for name in left if name not in out]

    def take(self, name: str, pool: Sequence[str], now: float, *, is_counted: bool = False) -> bool:
        """Whether a request may go to one of a pool now; the first one after an ejection is the probe, and alone.

        One that is counted there already may be the reason for a pause, which is for those after it.
        """
        if not self._sick and not self._paused:
            return True
        is_paused = self._paused.get(name, now) > now
        if name not in self.usable(pool, now) and not (is_counted and is_paused):
            return False
        sick = self._sick.get(name)
        if sick is not None and sick.is_ejected and now >= sick.until and not self._is_out(name, now):
            sick.probed_at = now
        return True

    def well(self, name: str, now: float) -> None:
        """It answered."""
        sick = self._sick.get(name)
        if sick is None:
            return
        if sick.is_ejected and now < sick.until:
            return  # an old request's answer says little about now
        sick.failures = 0
        if sick.is_ejected:
            sick.is_ejected, sick.probed_at, sick.well_since = False, _NEVER, now
        if not sick.times or now >= sick.well_since + sick.seconds:
            del self._sick[name]

    def failed(self, name: str, now: float) -> bool:
        """It failed; whether it is ejected by that."""
        sick = self._sick.setdefault(name, _Sick())
        sick.failures += 1
        if sick.is_ejected:
            if now < sick.until or sick.probed_at == _NEVER:
                return False
        elif sick.failures < self._settings.failures:
            return False
        self._eject(sick, now)
        return True

    def pause(self, name: str, until: float, now: float) -> None:
        """It takes nothing before then: it has said so itself, or its limits do."""
        if until > now:
            self._paused[name] = max(until, self._paused.get(name, until))

    def pause_left(self, pool: Iterable[str], now: float) -> float:
        """Seconds until the first of a pool takes something again; 0 = one does, or none is there."""
        return min((max(0.0, self._paused.get(name, now) - now) for name in pool), default=0.0)

    def ejected(self, now: float) -> tuple[str, ...]:
        """Those that are ejected, for people."""
        return tuple(name for name in self._sick if self._is_out(name, now))

    def keep_only(self, names: Collection[str]) -> None:
        """Forget the endpoints that are not among these."""
        self._sick = {name: sick for name, sick in self._sick.items() if name in names}
        self._paused = {name: until for name, until in self._paused.items() if name in names}

    def _eject(self, sick: _Sick, now: float) -> None:
        was_well_for_long = not sick.is_ejected and sick.times and now >= sick.well_since + sick.seconds
        sick.times = 1 if was_well_for_long else sick.times + 1
        longest, first = self._settings.longest_seconds, self._settings.first_seconds
        sick.seconds = min(longest, first * 2.0 ** min(sick.times - 1, 32))
        sick.until = now + sick.seconds
        sick.is_ejected, sick.failures, sick.probed_at = True, 0, _NEVER

    def _is_out(self, name: str, now: float) -> bool:
        sick = self._sick.get(name)
        if sick is None or not sick.is_ejected:
            return False
        return now < sick.until or now < sick.probed_at + self._settings.probe_seconds
