"""Ending a fleet, whether its supervisor still lives or was killed."""

from collections.abc import Iterable, Mapping
from signal import SIGKILL, SIGTERM

from local.ending import end, marked
from local.errors import RecordUnreadable
from local.identity import ProcessIdentity, identify, is_running, send, wait_for_end
from local.layout import Layout
from local.lock import held, holder
from local.record import FleetRecord, engines, read, remove
from local.socket_folder import sweep

GRACE_SECONDS = 10.0
ENGINE_GRACE_SECONDS = 5.0
SUPERVISOR_SECONDS = 60.0
"""A supervisor that ends its processes in order needs at most the sum of their graces."""


def down(layout: Layout, *, supervisor_seconds: float = SUPERVISOR_SECONDS) -> tuple[int, tuple[str, ...]]:
    """End whatever runs of the fleet in this folder: how many processes were found, and what could not be ended.

    A living supervisor is asked first; what it leaves, and everything of a killed one, is ended by id and start time.

    Raises:
        LocalFleetError: another supervisor took the folder meanwhile, or its files can't be opened.
    """
    try:
        return _down(layout, supervisor_seconds)
    finally:
        sweep()


def _down(layout: Layout, supervisor_seconds: float) -> tuple[int, tuple[str, ...]]:
    if not layout.state.is_dir():
        return end_marked(layout)
    record = readable(layout)
    found = len(running(layout, record))
    supervisor = record.supervisor if record is not None else _holder_of(layout)
    if supervisor is not None:
        _end_supervisor(supervisor, supervisor_seconds)
    with held(layout.lock):
        return found, end_recorded(readable(layout) or record, layout)


def readable(layout: Layout) -> FleetRecord | None:
    """The record, where there is one that can be read: the processes are known by their mark as well."""
    try:
        return read(layout.record)
    except RecordUnreadable:
        return None


def end_marked(layout: Layout) -> tuple[int, tuple[str, ...]]:
    """End what carries the mark of a folder that is gone: how many there were, and what could not be ended."""
    found = marked(layout.state)
    return len(found), _words(end(found, grace_seconds=GRACE_SECONDS))


def running(layout: Layout, record: FleetRecord | None) -> tuple[ProcessIdentity, ...]:
    """The processes of a fleet that run now: recorded, engines, and marked ones."""
    recorded = [record.supervisor, *(process.identity for process in record.processes)] if record else []
    known = [*recorded, *(engine.identity for engine in engines(layout.engines)), *marked(layout.state)]
    return tuple({process.pid: process for process in known if is_running(process)}.values())


def end_recorded(
    record: FleetRecord | None, layout: Layout, *, graces: Mapping[str, float] | None = None
) -> tuple[str, ...]:
    """End the recorded processes in reverse order, then the engines, then any marked process; what is left, in words.

    The record goes when nothing is left.
    """
    graces = graces or {}
    left: list[ProcessIdentity] = []
    for process in reversed(record.processes if record else ()):
        left += end([process.identity], grace_seconds=graces.get(process.name, GRACE_SECONDS))
    left += end((engine.identity for engine in engines(layout.engines)), grace_seconds=ENGINE_GRACE_SECONDS)
    left += end(marked(layout.state), grace_seconds=ENGINE_GRACE_SECONDS)
    if not left:
        remove(layout.record)
    return _words(left)


def _words(left: Iterable[ProcessIdentity]) -> tuple[str, ...]:
    return tuple(f"process {process.pid} could not be ended" for process in left)


def _holder_of(layout: Layout) -> ProcessIdentity | None:
    """The supervisor that has the folder, known by its lock alone."""
    pid = holder(layout.lock)
    return None if pid is None else identify(pid)


def _end_supervisor(supervisor: ProcessIdentity, seconds: float) -> None:
    if send(supervisor, SIGTERM) and not wait_for_end(supervisor, seconds):
        send(supervisor, SIGKILL)
        wait_for_end(supervisor, GRACE_SECONDS)
