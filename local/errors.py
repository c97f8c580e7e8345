"""What can go wrong with a local fleet, each with the sentence for the person who started it."""

from pathlib import Path

LITTLE_SPACE_BYTES = 5_000_000
"""Below this a full disk is the likely reason of a failed start."""


class LocalFleetError(Exception):
    """The local fleet can't do what was asked.

    LocalFleetError
      StateInUse     another supervisor has the state folder
      StartFailed    a process did not become ready
    """


class StateInUse(LocalFleetError):
    """Another supervisor has the state folder."""

    def __init__(self, state: Path, holder: str) -> None:
        self.state = state
        super().__init__(
            f"the state folder {state} is in use by {holder}. "
            f"End that fleet with 'enginehouse local down --state {state}', or give another folder with --state."
        )


class StartFailed(LocalFleetError):
    """A process of the fleet did not become ready; carries the last lines of its log."""

    def __init__(self, process: str, reason: str, *, log: Path, last_lines: str, free_bytes: int | None = None) -> None:
        self.process = process
        self.log = log
        shown = f"\nIts last lines:\n{last_lines}" if last_lines else " It wrote nothing."
        full = free_bytes is not None and free_bytes < LITTLE_SPACE_BYTES
        space = f" The disk of {log.parent} has only {free_bytes} bytes free." if full else ""
        super().__init__(f"{process} did not start: {reason}.{space} Its log: {log}.{shown}")
