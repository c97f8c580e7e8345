"""Requests that were admitted and are on their way from Envoy to the guard."""

import asyncio
import contextlib
from collections.abc import Callable

from gateway.admitted import Admitted

LIFETIME_SECONDS = 90.0
"""Longer than Envoy takes to receive a body and to pass it on."""


class TicketNumbers:
    """Random words that nobody can guess; randomness is asked for in large pieces, since asking costs."""

    _BYTES = 16
    _PIECE = 256

    def __init__(self, randomness: Callable[[int], bytes]) -> None:
        self._randomness = randomness
        self._piece = ""
        self._at = 0

    def __call__(self) -> str:
        """One that was never given."""
        if self._at >= len(self._piece):
            self._piece, self._at = self._randomness(self._BYTES * self._PIECE).hex(), 0
        at, self._at = self._at, self._at + 2 * self._BYTES
        return self._piece[at : self._at]


class Tickets:
    """Each admitted request once, by a number that nobody can guess."""

    def __init__(self, new_ticket: Callable[[], str]) -> None:
        self._new_ticket = new_ticket
        self._waiting: dict[str, tuple[float, Admitted]] = {}
        self._on_empty: asyncio.Event | None = None

    def __len__(self) -> int:
        """Requests that did not arrive yet."""
        return len(self._waiting)

    def add(self, admitted: Admitted, now: float) -> str:
        """The ticket of a request."""
        ticket = self._new_ticket()
        self._waiting[ticket] = (now + LIFETIME_SECONDS, admitted)
        return ticket

    def take(self, ticket: str) -> Admitted | None:
        """The request of a ticket; ``None`` = there is none, or it came before."""
        found = self._waiting.pop(ticket, None)
        if self._on_empty is not None and not self._waiting:
            self._on_empty.set()
        return None if found is None else found[1]

    def give_up(self, ticket: str) -> None:
        """Its client left before Envoy passed it on; nothing, where it came."""
        admitted = self.take(ticket)
        if admitted is not None:
            admitted.never_came()

    async def drain(self, deadline_seconds: float) -> None:
        """Returns when those that were admitted have arrived, or at the deadline."""
        if self._waiting:
            self._on_empty = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._on_empty.wait(), deadline_seconds)

    def expire(self, now: float) -> None:
        """Give up those that never came: their clients left before Envoy passed them on."""
        late = [ticket for ticket, (end, _) in self._waiting.items() if end <= now]
        for ticket in late:
            self.give_up(ticket)
