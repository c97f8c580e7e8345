"""A lease of requests that run at once: slots that a gateway has for as long as the store hears of it."""

import math

from gateway.accounts import Standing
from gateway.budget_store import SLOT_SECONDS, Kind, Wish
from gateway.token_lease import IDLE_SECONDS, Share

_TRY_AGAIN_SECONDS = 1.0
_SPARE = 20
"""With slots that are missing comes this part of the share, which lies here until it is idle."""
_RENEWED_EVERY_SECONDS = SLOT_SECONDS / 3


class SlotLease:
    """Running requests fill slots; a slot that nobody fills for a while is given back."""

    def __init__(self, name: str, limit: int, gateway: str, share: Share) -> None:
        self.limit = limit
        self._name = name
        self._gateway = gateway
        self._share = share
        self._running = 0
        self._slots = 0
        self._missed = self._asked = 0
        self._drawn_at = -math.inf
        self._heard_at = -math.inf
        self._asked_at = -math.inf
        self._serial = 0
        self._pending: Wish | None = None
        self._is_lost = False

    @property
    def is_alone(self) -> bool:
        """Whether the store can't be reached."""
        return self._is_lost

    def resize(self, limit: int, now: float) -> None:
        """The store takes it with the next wish."""
        self.limit = limit

    def share_with(self, share: Share) -> None:
        """Counts at once."""
        self._share = share

    def wait(self, amount: int, now: float) -> float:
        """Nobody knows when a request ends; who can wait for the store tries again then."""
        if amount > self.limit:
            return math.inf
        missing = self._running + amount - self._allowed(now)
        if missing <= 0:
            return 0.0
        self._missed = max(self._missed, missing)
        self._asked = min(self.limit, self._asked + amount)
        return _TRY_AGAIN_SECONDS

    def hold(self, number: int, amount: int, now: float) -> None:
        """One more runs."""
        self._running += amount
        self._drawn_at = now

    def settle(self, number: int, amount: int, charged: int, now: float) -> None:
        """One less runs, whatever it was charged."""
        self._running -= amount

    def standing(self, now: float) -> Standing:
        """How many more this gateway may run at once."""
        left = max(0, self._allowed(now) - self._running)
        return Standing(self.limit, left, _TRY_AGAIN_SECONDS if self._running else 0.0)

    def wish(self, now: float) -> Wish | None:
        """Slots for those that found none, or that we are still here; or the last wish, if it was not answered."""
        if self._pending is not None:
            return self._pending
        is_idle = now - self._drawn_at > IDLE_SECONDS
        held = self._running if is_idle or self._is_expired(now) else max(self._running, self._slots)
        is_due = held > 0 and now - self._asked_at >= _RENEWED_EVERY_SECONDS
        if not (self._missed or is_due or held != self._slots):
            return None
        self._serial += 1
        self._asked_at = now
        self._slots = held
        wanted = max(self._missed, self._asked)  # of all who found none: each alone would come too late in a burst
        if wanted:  # whoever comes with the answer would be faster than who waits for it
            wanted += self._share.of(self.limit) // _SPARE
        self._pending = Wish(self._name, Kind.SLOTS, self.limit, self._gateway, self._serial, wanted, held=held)
        self._missed = self._asked = 0
        return self._pending

    def debt(self, epoch: str, now: float) -> Wish | None:
        """What a store that has forgotten everything is told at once: the slots that are filled here."""
        held = self._running if self._is_expired(now) else max(self._running, self._slots)
        return Wish(self._name, Kind.SLOTS, self.limit, self._gateway, 0, 0, held=held) if held else None

    def answer(self, wish: Wish, granted: int | None, now: float) -> None:
        """Fill what was granted, or go on within the share."""
        if wish != self._pending:
            return
        self._is_lost = granted is None
        if granted is None:
            return
        self._pending = None
        self._slots = wish.held + granted
        if granted:
            self._drawn_at = max(self._drawn_at, self._asked_at)
        self._heard_at = self._asked_at

    def _allowed(self, now: float) -> int:
        """Slots end where the store stops counting them, however late its answer came."""
        return self._share.of(self.limit) if self._is_lost else 0 if self._is_expired(now) else self._slots

    def _is_expired(self, now: float) -> bool:
        return now - self._heard_at >= SLOT_SECONDS
