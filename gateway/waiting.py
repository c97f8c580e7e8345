"""Where requests wait for their turn: the fair queues on the event loop."""

import asyncio
from collections.abc import Callable

from gateway.turn_words import Wish
from gateway.turns import Place, Turns

LOOK_SECONDS = 0.05
"""How often it is looked whether engines that say so themselves have room again, and whose time is over."""


class WaitingRoom:
    """Makes turns awaitable; a timer runs only while somebody waits."""

    def __init__(self, turns: Turns, clock: Callable[[], float]) -> None:
        self._turns = turns
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    async def turn(self, wish: Wish, holds: Callable[[Place], None]) -> Place:
        """The place of a request once it has its turn or is refused.

        ``holds`` is told the place before any waiting: whoever does not wait until the end has to leave it.
        """
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        place = self._turns.place(wish, self._clock(), done.set)
        holds(place)
        self._turns.enter(place)
        if not done.is_set():
            self._watch(loop)
            await done.wait()
        return place

    def look(self) -> None:
        """Something changed at an endpoint: give the turns that there is room for."""
        if len(self._turns):
            self._turns.pump(self._clock())

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None:
            self._timer = loop.call_later(LOOK_SECONDS, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(LOOK_SECONDS, self._look, loop) if len(self._turns) else None
        self._turns.pump(self._clock())
