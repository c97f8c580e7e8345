"""Ending a fleet, whether its supervisor still lives or was killed."""

from collections.abc import Mapping
from signal import SIGKILL, SIGTERM

from local.ending import end, marked
from local.identity import ProcessIdentity, is_running, send, wait_for_end
from local.layout import Layout
from local.lock import held
from local.record import FleetRecord, engines, read

GRACE_SECONDS = 10.0
ENGINE_GRACE_SECONDS = 5.0
SUPERVISOR_SECONDS = 60.0
"""A supervisor that ends its processes in order needs at most the sum of their graces."""


def down(layout: Layout, *, supervisor_seconds: float = SUPERVISOR_SECONDS) -> tuple[int, tuple[str, ...]]:
    """End whatever runs of the fleet in this folder: how many processes were found, and what could not be ended.

    A living supervisor is asked first; what it leaves, and everything of a killed one, is ended by id and start time.

    Raises:
        LocalFleetError: the record can't be read, or another supervisor took the folder meanwhile.
    """
    if not layout.state.is_dir():
        return 0, ()
    record = read(layout.record)
    found = len(running(layout, record))
    if record is not None:
        _end_supervisor(record.supervisor, supervisor_seconds)
    with held(layout.lock):
        return found, end_recorded(read(layout.record) or record, layout)


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
        layout.record.unlink(missing_ok=True)
    return tuple(f"process {process.pid} could not be ended" for process in left)


def _end_supervisor(supervisor: ProcessIdentity, seconds: float) -> None:
    if send(supervisor, SIGTERM) and not wait_for_end(supervisor, seconds):
        send(supervisor, SIGKILL)
        wait_for_end(supervisor, GRACE_SECONDS)
