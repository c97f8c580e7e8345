"""What can go wrong with a local fleet, each with the sentence for the person who started it."""

from pathlib import Path

LITTLE_SPACE_BYTES = 5_000_000
"""Below this a full disk is the likely reason of a failed start."""


class LocalFleetError(Exception):
    """The local fleet can't do what was asked.

    LocalFleetError
      StateInUse     another supervisor has the state folder
      StateLost      the state folder was removed or replaced
      RecordUnreadable   what is written down about a fleet can't be read
      StartFailed    a process did not become ready
    """


class StateInUse(LocalFleetError):
    """Another supervisor has the state folder."""

    def __init__(self, state: Path, pid: int | None) -> None:
        self.state = state
        self.pid = pid
        super().__init__(
            f"the state folder {state} is in use by {f'process {pid}' if pid else 'another process'}. "
            f"End that fleet with 'enginehouse local down --state {state}', or give another folder with --state."
        )


class StateLost(LocalFleetError):
    """The state folder was removed or replaced while its fleet ran."""

    def __init__(self, state: Path) -> None:
        super().__init__(
            f"the state folder {state} was removed or replaced: its fleet can't go on and ends. "
            "Start another with 'enginehouse local up'."
        )


class RecordUnreadable(LocalFleetError):
    """The record of a fleet can't be read."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"the record {path} can't be read: {reason}. "
            f"'enginehouse local down --state {path.parent}' ends what runs and removes it."
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
