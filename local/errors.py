"""What can go wrong with a local fleet, each with the sentence for the person who started it."""

from pathlib import Path


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

    def __init__(self, process: str, reason: str, *, log: Path, last_lines: str) -> None:
        self.process = process
        self.log = log
        shown = f"\nIts last lines:\n{last_lines}" if last_lines else " It wrote nothing."
        super().__init__(f"{process} did not start: {reason}. Its log: {log}.{shown}")
