"""How a fleet is: each process with its id, port and health."""

from typing import Literal

from fleet.value import Value
from local import probe
from local.identity import ProcessIdentity, is_running
from local.layout import Layout
from local.record import EngineRecord, FleetRecord, ProcessRecord, engines, read


class ProcessStatus(Value):
    """One process."""

    process: str
    kind: Literal["supervisor", "room", "engine"]
    pid: int
    port: int | None
    healthy: bool
    detail: str
    """Why it is not healthy; empty when it is."""
    restarts: int = 0


class FleetStatus(Value):
    """One fleet."""

    state_folder: str
    state: str
    """``starting``, ``running``, ``ending`` or ``down``."""
    urls: dict[str, str]
    processes: tuple[ProcessStatus, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether it runs and every process answers."""
        return self.state == "running" and all(process.healthy for process in self.processes)


def status(layout: Layout) -> FleetStatus:
    """Ask every recorded process; raises `LocalFleetError` when the record can't be read."""
    record = read(layout.record)
    if record is None:
        return FleetStatus(state_folder=str(layout.state), state="down", urls={}, processes=())
    lines = (
        _supervisor(record),
        *(_room(process) for process in record.processes),
        *(_engine(engine) for engine in engines(layout.engines) if is_running(engine.identity)),
    )
    return FleetStatus(state_folder=str(layout.state), state=record.state, urls=record.urls, processes=lines)


def _supervisor(record: FleetRecord) -> ProcessStatus:
    detail = _ended(record.supervisor)
    if detail:
        detail += "; 'enginehouse local down' ends what it left"
    return ProcessStatus(
        process="supervisor", kind="supervisor", pid=record.supervisor.pid, port=None, healthy=not detail, detail=detail
    )


def _room(process: ProcessRecord) -> ProcessStatus:
    detail = _ended(process.identity) or next(filter(None, map(probe.complaint, process.probes)), "")
    return ProcessStatus(
        process=process.name,
        kind="room",
        pid=process.identity.pid,
        port=process.ports[0] if process.ports else None,
        healthy=not detail,
        detail=detail,
        restarts=process.restarts,
    )


def _engine(engine: EngineRecord) -> ProcessStatus:
    detail = probe.complaint(f"http://127.0.0.1:{engine.port}/health") or ""
    return ProcessStatus(
        process=engine.name,
        kind="engine",
        pid=engine.identity.pid,
        port=engine.port,
        healthy=not detail,
        detail=detail,
    )


def _ended(process: ProcessIdentity) -> str:
    return "" if is_running(process) else f"process {process.pid} has ended"
