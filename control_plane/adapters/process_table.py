"""Processes by pid and start time: a pid alone may be another process by now."""

import os
import signal
from collections.abc import Iterator
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
    """The pid of the process that was started with an environment variable, not of its children; or ``None``."""
    found = [pid for pid, there in marked(name) if there == value and start_ticks(pid) is not None]
    return next((pid for pid in found if _leads_its_session(pid)), found[0] if found else None)


def marked(name: str) -> Iterator[tuple[int, str]]:
    """Every process that has an environment variable, with its value: started with it, or a child of such a one."""
    wanted = f"{name}=".encode()
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # gone, or somebody else's
        for variable in variables:
            if variable.startswith(wanted):
                yield int(entry.name), variable.removeprefix(wanted).decode(errors="replace")


def works_in(pid: int, folder: Path) -> bool:
    """Whether a process runs in a folder."""
    try:
        return (_PROC / str(pid) / "cwd").readlink() == folder
    except OSError:
        return False


def _leads_its_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False
