"""A lease of a budget that is used up: tokens or requests of a minute, tokens of a day, money of a month."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from gateway.accounts import Standing
from gateway.budget_store import Kind, Wish
from gateway.calendar_account import CalendarAccount, Period, window_of
from gateway.token_bucket import TokenBucket

IDLE_SECONDS = 5.0
"""A lease that nobody draws on for so long is given back."""
_TRY_AGAIN_SECONDS = 1.0
_ALONE_SECONDS = 10.0
"""Worth another try for what is more than the share: the store may be back."""
_CHUNKS = {Kind.FLOW: 20, Kind.STOCK: 200}
"""A gateway asks for this part of its share at a time: 3 s of a minute's budget, 7 min of a day's."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many gateways there are, and which of them this is; the shares of all add up to the limit."""

    gateways: int = 1
    position: int = 0

    def of(self, limit: int) -> int:
        """This gateway's part."""
        return limit // self.gateways + (self.position < limit % self.gateways)


THE_WHOLE = Share()


class _Hold(NamedTuple):
    alone: TokenBucket | CalendarAccount | None
    """``None`` = it was drawn on the lease."""
    window: float
    """When its window began."""


class TokenLease:
    """What was granted and not spent is at hand; what a request held and did not use goes back to the store.

    It is not simply at hand again: with long requests it may have filled up in the store meanwhile, and only the store
    knows.
    """

    def __init__(self, name: str, limit: int, gateway: str, share: Share, period: Period | None, now: float) -> None:
        self._limit = limit
        self._name = name
        self._gateway = gateway
        self._share = share
        self._period = period
        self._kind = Kind.FLOW if period is None else Kind.STOCK
        self._window = (-math.inf, math.inf) if period is None else window_of(period, now)
        self._at_hand = 0
        self._taken = 0
        self._spent = 0
        self._unused = 0
        self._owed = 0
        self._missed = self._asked = 0
        self._is_dry = False
        self._drawn_at = self._granted_at = now
        self._serial = 0
        self._pending: Wish | None = None
        self._pending_window = 0.0
        self._alone: TokenBucket | CalendarAccount | None = None
        self._spent_alone = 0
        self._holds: dict[int, _Hold] = {}

    @property
    def limit(self) -> int:
        """What can be held at most: of all, or of the share while the store is lost."""
        return self._limit if self._alone is None else self._alone.limit

    @property
    def is_alone(self) -> bool:
        """Whether the store can't be reached."""
        return self._alone is not None

    def resize(self, limit: int, now: float) -> None:
        """The store takes it with the next wish."""
        self._limit = limit
        if self._alone is not None:
            self._alone.resize(self._share.of(limit), now)

    def share_with(self, share: Share) -> None:
        """Holds from the next time that the store is lost."""
        self._share = share

    def wait(self, amount: int, now: float) -> float:
        """What is missing is wished for; who can wait for the store tries again then."""
        if amount > self._limit:
            return math.inf
        self._roll(now)
        if self._alone is not None:
            wait = self._alone.wait(amount, now)
            return wait if math.isfinite(wait) else _ALONE_SECONDS
        missing = amount - self._at_hand
        if missing <= 0:
            return 0.0
        self._missed = max(self._missed, missing)
        self._asked = min(self._limit, self._asked + amount)
        if not self._is_dry:
            return _TRY_AGAIN_SECONDS
        return missing * 60 / self._limit if self._period is None else max(_TRY_AGAIN_SECONDS, self._window[1] - now)

    def hold(self, number: int, amount: int, now: float) -> None:
        """Draw on the lease, or on the share."""
        self._drawn_at = now
        self._holds[number] = _Hold(self._alone, self._window[0])
        self._spent += amount
        if self._alone is None:
            self._at_hand -= amount
        else:
            self._alone.hold(number, amount, now)
            self._spent_alone += amount

    def settle(self, number: int, amount: int, charged: int, now: float) -> None:
        """What was not used goes back; what was used beyond the hold is taken from what is at hand."""
        hold, unused = self._holds.pop(number), amount - charged
        self._roll(now)
        is_of_this_window = hold.window == self._window[0]
        if hold.alone is not None:
            hold.alone.settle(number, amount, charged, now)
        if unused < 0 or is_of_this_window:
            self._spent -= unused
        if hold.alone is not None and hold.alone is self._alone:
            self._spent_alone -= unused if unused < 0 or is_of_this_window else 0
        elif unused < 0:
            self._at_hand += unused
        elif is_of_this_window:
            self._unused += unused

    def standing(self, now: float) -> Standing:
        """What this gateway can hold at once; others may have more at hand."""
        if self._alone is not None:
            return self._alone.standing(now)
        self._roll(now)
        reset = 60.0 if self._kind is Kind.FLOW else self._window[1] - now
        return Standing(self._limit, max(0, self._at_hand), reset)

    def wish(self, now: float) -> Wish | None:
        """What is missing and a chunk, what was not used, what is owed; or the last wish, if it was not answered."""
        if self._pending is not None:
            return self._pending
        self._roll(now)
        chunk = max(1, self._share.of(self._limit) // _CHUNKS[self._kind])
        is_idle = now - self._drawn_at > IDLE_SECONDS and not self._missed
        self._return_what_lies(0 if is_idle else chunk, now)
        wanted = max(self._asked, chunk)  # of all who found too little: each alone would come too late in a burst
        take = 0 if is_idle and self._at_hand == 0 else max(0, self._missed, wanted - self._at_hand)
        if not (take or self._unused or self._owed):
            return None
        self._serial += 1
        self._pending_window = self._window[0]
        least, unused, owed = self._missed, self._unused, self._owed
        self._pending = Wish(
            self._key(), self._kind, self._limit, self._gateway, self._serial, take, least, unused, owed
        )
        self._unused = self._owed = self._missed = self._asked = 0
        return self._pending

    def answer(self, wish: Wish, granted: int | None, now: float) -> None:
        """Draw on the grant, or go on alone."""
        if wish != self._pending:
            return
        self._roll(now)
        if granted is None:
            if self._alone is None:
                self._alone = self._go_alone(now)
            return
        self._pending = None
        if self._pending_window == self._window[0]:
            self._taken = max(0, self._taken + granted + wish.owed - wish.give_back)
        if self._alone is not None:
            standing = self._alone.standing(now)
            self._owed += max(0, min(self._spent_alone, standing.limit - standing.remaining))
            self._alone = None
        if self._pending_window == self._window[0]:
            self._at_hand += granted
            self._granted_at = now if granted else self._granted_at
            self._is_dry = granted < wish.take

    def debt(self, epoch: str, now: float) -> Wish | None:
        """What a store that has forgotten all is told once: what it had granted here, and no burst in this minute."""
        self._roll(now)
        owed = self._share.of(self._limit) if self._period is None else self._taken
        if not owed:
            return None
        return Wish(self._key(), self._kind, self._limit, f"{self._gateway}@{epoch}", 1, 0, owed=owed)

    def _key(self) -> str:
        return self._name if self._period is None else f"{self._name}/{self._window[0]:.0f}"

    def _return_what_lies(self, kept: int, now: float) -> None:
        """What was granted a while ago and is still here would be a burst on top of what the store grants by then."""
        excess = self._at_hand - kept
        if excess > 0 and now - self._granted_at > IDLE_SECONDS:
            self._unused += excess
            self._at_hand = kept

    def _go_alone(self, now: float) -> TokenBucket | CalendarAccount:
        """The share: of a minute's budget what is at hand and what flows in, of a day's what is not spent of it."""
        share = self._share.of(self._limit)
        if self._period is not None:
            self._spent_alone = 0
            self._unused += max(0, self._at_hand)
            self._at_hand = min(0, self._at_hand)
            account = CalendarAccount(share, self._period, now)
            account.restore(self._window[0], min(share, self._spent), now)
            return account
        at_hand = max(0, min(share, self._at_hand))
        self._at_hand -= at_hand
        self._spent_alone = -at_hand
        bucket = TokenBucket(share, now)
        bucket.restore(at_hand, now)
        return bucket

    def _roll(self, now: float) -> None:
        """What was at hand in a window that is over is over, and so is what was owed."""
        if self._period is None or self._window[0] <= now < self._window[1]:
            return
        self._window = window_of(self._period, now)
        self._at_hand = min(0, self._at_hand)
        self._taken = self._spent = self._spent_alone = self._unused = self._owed = self._missed = self._asked = 0
        self._is_dry = False
