"""Notices when nothing happens for a while, without a new timer for each thing that does."""

import asyncio
from collections.abc import Callable


class Silence:
    """Calls after each spell of silence, until it is stopped."""

    def __init__(self, spell_seconds: float, then: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._spell_seconds = spell_seconds
        self._then = then
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(spell_seconds, self._look)

    def heard(self) -> None:
        """Something happened."""
        self._heard_at = self._loop.time()

    def stop(self) -> None:
        """Nobody listens any more. Whoever did is let go: he mostly holds this, and cycles wait for the collector."""
        self._timer.cancel()
        self._then = _nobody

    def _look(self) -> None:
        rest = self._heard_at + self._spell_seconds - self._loop.time()
        if rest <= 0:
            rest = self._spell_seconds
            self._heard_at = self._loop.time()
            self._timer = self._loop.call_later(rest, self._look)  # before the call, which may stop it
            self._then()
        else:
            self._timer = self._loop.call_later(rest, self._look)


def _nobody() -> None:
    """Nobody is told."""
