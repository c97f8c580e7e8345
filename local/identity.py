"""Which process is meant: its id with its start time, because the kernel gives ids out again."""

import os
import select
import signal
import time
from pathlib import Path

from fleet.value import Value

PROC = Path("/proc")
POLL_SECONDS = 0.02
_STATE, _START_TICKS = 0, 19  # places after the command's closing bracket in /proc/<pid>/stat, see proc(5)


class ProcessIdentity(Value):
    """One process of one boot."""

    pid: int
    start_ticks: int
    """Clock ticks from boot to the start, as the kernel counts them."""
    boot_id: str = ""
    """The boot during which it started; empty = not noted, then only the ticks are compared."""


def boot_id() -> str:
    """The id of the running boot; empty where the kernel tells none."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def identify(pid: int) -> ProcessIdentity | None:
    """The running process with this id; ``None`` = there is none, or only its remains."""
    fields = _stat(pid)
    if fields is None or fields[_STATE] in "ZXx":
        return None
    return ProcessIdentity(pid=pid, start_ticks=int(fields[_START_TICKS]), boot_id=boot_id())


def identify_child(pid: int) -> ProcessIdentity:
    """A child that is not reaped yet, running or ended: until then nobody else can have its id."""
    fields = _stat(pid)
    return ProcessIdentity(pid=pid, start_ticks=int(fields[_START_TICKS]) if fields else 0, boot_id=boot_id())


def is_running(process: ProcessIdentity) -> bool:
    """Whether exactly this process still runs."""
    found = identify(process.pid)
    return found is not None and is_same(found, process)


def is_same(one: ProcessIdentity, other: ProcessIdentity) -> bool:
    """Whether two records mean one process."""
    same_boot = not one.boot_id or not other.boot_id or one.boot_id == other.boot_id
    return one.pid == other.pid and one.start_ticks == other.start_ticks and same_boot


def send(process: ProcessIdentity, signum: signal.Signals) -> bool:
    """Signal exactly this process, never a later one with its id; whether it was there."""
    try:
        descriptor = _descriptor(process.pid)
        try:
            # The descriptor holds the process fast: when the check passes, nobody else can get the signal.
            if not is_running(process):
                return False
            if descriptor is None:
                os.kill(process.pid, signum)
            else:
                signal.pidfd_send_signal(descriptor, signum)
        finally:
            _close(descriptor)
    except ProcessLookupError:
        return False
    return True


def wait_for_end(process: ProcessIdentity, seconds: float) -> bool:
    """Wait until this process has ended, at most so long; whether it has."""
    try:
        descriptor = _descriptor(process.pid)
    except ProcessLookupError:
        return True
    deadline = time.monotonic() + seconds
    try:
        while is_running(process) and time.monotonic() < deadline:
            _wait(descriptor, deadline - time.monotonic())
    finally:
        _close(descriptor)
    return not is_running(process)


def _descriptor(pid: int) -> int | None:
    """A descriptor of a process; ``None`` = the kernel has none (before 5.3, and some sandboxes)."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:
        return None


def _wait(descriptor: int | None, seconds: float) -> None:
    if descriptor is None:
        time.sleep(min(POLL_SECONDS, max(0.0, seconds)))
    else:
        select.select([descriptor], [], [], max(0.0, seconds))


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def _stat(pid: int) -> list[str] | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()
