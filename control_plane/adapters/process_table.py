"""Processes by pid and start time: a pid alone may be another process by now."""

import os
import signal
from pathlib import Path

_PROC = Path("/proc")
_STATE_FIELD = 3
_START_FIELD = 22
"""Fields of ``/proc/PID/stat``, counted from 1 (proc(5))."""


def start_ticks(pid: int) -> int | None:
    """When a living process started, in clock ticks since boot; ``None`` when there is none (or only its remains)."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold blanks and brackets
    first = _STATE_FIELD
    if fields[_STATE_FIELD - first] in ("Z", "X"):
        return None
    return int(fields[_START_FIELD - first])


def is_alive(pid: int, ticks: int) -> bool:
    """Whether the process that started then still lives under its pid."""
    return start_ticks(pid) == ticks


def send(pid: int, ticks: int, number: signal.Signals) -> bool:
    """Send a signal to exactly this process; gives whether it was there."""
    if not is_alive(pid, ticks):
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def find_by_environment(name: str, value: str) -> int | None:
    """The pid of a process that was started with an environment variable, or ``None``."""
    wanted = f"{name}={value}".encode()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # gone, or somebody else's
        if wanted in variables:
            return int(entry.name)
    return None
