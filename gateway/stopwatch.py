"""How long one request took, to the first byte of its answer and to its end, by a clock that never jumps."""

from collections.abc import Callable
from typing import NamedTuple


class Times(NamedTuple):
    """The times of one request."""

    seconds: float
    """From its coming to its end."""
    first_byte_seconds: float | None
    """From its coming to the first byte of the engine's answer; ``None`` = none came."""


class Stopwatch:
    """Runs from the moment at which a request came."""

    __slots__ = ("_came", "_first_byte", "_now")

    def __init__(self, now_monotonic_seconds: Callable[[], float]) -> None:
        self._now = now_monotonic_seconds
        self._came = now_monotonic_seconds()
        self._first_byte: float | None = None

    def first_byte(self) -> None:
        """The engine's answer began; only the first call counts."""
        if self._first_byte is None:
            self._first_byte = self._now() - self._came

    def first_byte_after(self, seconds: float) -> None:
        """Another clock says when the answer began."""
        self._first_byte = seconds

    def times(self) -> Times:
        """The times so far."""
        return Times(self._now() - self._came, self._first_byte)
