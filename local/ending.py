"""Ending processes: TERM, a while of grace, then KILL; only processes whose start time matches."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from signal import SIGKILL, SIGTERM

from local.identity import PROC, ProcessIdentity, identify, is_running, send, wait_for_end

FLEET_VARIABLE = "ENGINEHOUSE_FLEET"
"""Set in the environment of every process of a fleet, so that none is lost when its record is."""
OWN_PREFIX = "ENGINEHOUSE_"
KILL_SECONDS = 5.0


def child_environment(environment: Mapping[str, str], state: Path) -> dict[str, str]:
    """What a process of the fleet gets to see: the mark, and nothing that would overrule its settings file."""
    others = {name: value for name, value in environment.items() if not name.startswith(OWN_PREFIX)}
    return others | {FLEET_VARIABLE: str(state)}


def end(
    processes: Iterable[ProcessIdentity], *, grace_seconds: float, clock: Callable[[], float] = time.monotonic
) -> tuple[ProcessIdentity, ...]:
    """End these processes together; the ones that outlive even KILL."""
    asked = [process for process in processes if send(process, SIGTERM)]
    deadline = clock() + grace_seconds
    stubborn = [process for process in asked if not wait_for_end(process, deadline - clock())]
    for process in stubborn:
        send(process, SIGKILL)
    deadline = clock() + KILL_SECONDS
    return tuple(process for process in stubborn if not wait_for_end(process, deadline - clock()))


def marked(state: Path) -> tuple[ProcessIdentity, ...]:
    """The running processes that carry the mark of the fleet in this folder, whoever started them."""
    mark = f"{FLEET_VARIABLE}={state}".encode()
    found = (identify(pid) for pid in _pids() if mark in _environment(pid))
    return tuple(process for process in found if process is not None and is_running(process))


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit())


def _environment(pid: int) -> list[bytes]:
    try:
        return (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # ended meanwhile, or somebody else's
        return []
