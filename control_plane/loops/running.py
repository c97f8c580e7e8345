"""Runs loops in threads until they are told to stop; a round that fails is logged and the next one tries again."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from control_plane import logs

FAILURE_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Loop:
    """Something that is looked at again and again."""

    name: str
    look: Callable[[], object]
    every_seconds: float


class LoopRunner:
    """The threads of all loops."""

    def __init__(self, loops: tuple[Loop, ...]) -> None:
        self._loops = loops
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def first_round(self, name: str) -> None:
        """One round of a loop before the others start."""
        self._look(next(loop for loop in self._loops if loop.name == name))

    def start(self) -> None:
        """Start every loop."""
        for loop in self._loops:
            thread = threading.Thread(target=self._run, args=(loop,), name=loop.name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """Ask every loop to end and wait for its round."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout_seconds)

    def _run(self, loop: Loop) -> None:
        while not self._stop.is_set():
            is_well = self._look(loop)
            self._stop.wait(loop.every_seconds if is_well else max(loop.every_seconds, FAILURE_PAUSE_SECONDS))

    def _look(self, loop: Loop) -> bool:
        try:
            loop.look()
        except Exception as error:  # a loop must outlive a full disk or a locked database
            logs.get().error(logs.LOOP_FAILED, loop=loop.name, problem=f"{type(error).__name__}: {error}")
            return False
        return True
