"""The wish to end: Ctrl-C, SIGTERM or SIGHUP, seen by every wait.

The handler touches nothing but a pipe and two attributes: it may run in the middle of any line of the main thread.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Self

ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal came while `StopRequest.interrupting` was open. No `Exception`, so that nothing swallows it."""

    def __init__(self, signum: int) -> None:
        self.signum = signum
        super().__init__(f"ended by {signal.Signals(signum).name}")


class StopRequest:
    """Set once, by a signal or by `set`; waiting on it ends at once.

    Outside `interrupting` a signal only sets it, so that a process is never started without being recorded.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        """The first signal that came; ``None`` = none came."""
        self._raises = False
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the pipe back."""
        for descriptor in (self._reader, self._writer):
            os.close(descriptor)

    @property
    def is_set(self) -> bool:
        """Whether somebody asked to end."""
        return self.wait(0)

    def set(self) -> None:
        """Ask to end."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"x")

    def wait(self, seconds: float) -> bool:
        """Wait until somebody asks to end, at most so long; whether it was asked."""
        ready, _, _ = select.select([self._reader], [], [], max(0.0, seconds))
        return bool(ready)

    @contextlib.contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Turn the ending signals into this request; the old handlers come back afterwards."""
        before = {number: signal.signal(number, self._handle) for number in ENDING_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def interrupting(self) -> Iterator[None]:
        """Let a signal raise `Interrupted` inside: for long work that starts no process of the fleet."""
        if self.signum is not None:
            raise Interrupted(self.signum)
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        first = self.signum is None
        self.signum = self.signum or signum
        self.set()
        if self._raises and first:
            self._raises = False
            raise Interrupted(signum)
