"""The cluster of a machine without Kubernetes: engines as processes that outlive the control plane.

Each process has a record with its pid and start time. A control plane that starts reads the records and goes on with
the engines that still live; it sends a signal only where pid and start time match.
"""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from control_plane import logs
from control_plane.adapters import process_table
from control_plane.adapters.engine_probe import EngineProbe
from control_plane.adapters.process_records import ProcessRecord, ProcessRecords
from control_plane.ports import Clock, ClusterError
from control_plane.records import Launch, Replica, ReplicaState

HOST = "127.0.0.1"
MARK = "ENGINEHOUSE_REPLICA"
"""Environment variable with the replica's id: finds a process whose pid was not written down in time."""
LOST_AFTER_FAILURES = 3
"""A living engine that fails this many health checks in a row gets no more requests until it answers again."""
_LOG_TAIL_BYTES = 400

REAP_SECONDS = 1.0
"""For the last threads of a process that is gone: milliseconds in practice."""


@dataclass(slots=True)
class _Health:
    """What is remembered of an engine between two looks."""

    is_healthy: bool = False
    since: float = 0.0
    failures: int = 0
    detail: str = "not healthy yet"


class Processes:
    """Engines as processes."""

    runs_engines = True

    def __init__(
        self,
        *,
        folder: Path,
        launch: Mapping[str, Sequence[str]],
        clock: Clock,
        stop_seconds: float,
        probe: EngineProbe | None = None,
    ) -> None:
        self._records = ProcessRecords(folder)
        self._launch = launch
        self._clock = clock
        self._stop_seconds = stop_seconds
        self._probe = probe or EngineProbe()
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._health: dict[str, _Health] = {}
        self._known: dict[str, ProcessRecord] = {}
        for record in self._records.all():
            self._known[record.id] = self._adopted(record)
        self._end_those_without_record()

    def observe(self) -> Sequence[Replica]:
        """Every process with a record, as it is now."""
        return [self._replica(record) for record in list(self._known.values())]

    def cannot_start(self, engine: str) -> str | None:
        """Why an engine can't be started here, or ``None``."""
        if engine in self._launch:
            return None
        known = ", ".join(sorted(self._launch)) or "none"
        return f"the setting 'launch' has no command for '{engine}' (it has: {known})"

    def start(self, launch: Launch) -> None:
        """Start one process; its record is on disk before it runs. Raises `ClusterError`."""
        replica_id = f"{launch.deployment}-{launch.identity[:8]}-{secrets.token_hex(4)}"
        port = _free_port()
        record = ProcessRecord(
            id=replica_id,
            deployment=launch.deployment,
            identity=launch.identity,
            engine=launch.engine,
            revision=launch.revision,
            port=port,
            created=self._now(),
        )
        line = launch.command(port)
        prefix = [part.replace("{version}", launch.version) for part in self._launch[launch.engine]]
        try:
            self._records.write(record)
            folder = self._records.work_folder(replica_id)
            folder.mkdir(exist_ok=True)
            for name, text in line.files.items():
                (folder / name).write_text(text)
            environment = {**os.environ, **line.environment, MARK: replica_id}
            child = self._spawn([*prefix, "--", *line.argv], environment, folder, replica_id)
        except OSError as error:
            self._remove(replica_id)
            place = f" ({error.filename})" if error.filename and error.filename != prefix[0] else ""
            raise ClusterError(f"{launch.engine} can't be started as '{prefix[0]}': {error.strerror}{place}") from error
        self._children[replica_id] = child
        self._keep(replace(record, pid=child.pid, start_ticks=process_table.start_ticks(child.pid)))

    def drain(self, replica_id: str) -> None:
        """Note that a process gets no new requests."""
        record = self._known.get(replica_id)
        if record is not None and record.draining_since is None:
            self._keep(replace(record, draining_since=self._now()))

    def end(self, replica_id: str) -> None:
        """SIGTERM first, SIGKILL when that was long ago."""
        record = self._known.get(replica_id)
        if record is None or record.pid is None or record.start_ticks is None:
            return
        if record.ending_since is None:
            self._keep(replace(record, ending_since=self._now()))
            process_table.send(record.pid, record.start_ticks, signal.SIGTERM)
        elif self._now() - record.ending_since >= self._stop_seconds:
            process_table.send(record.pid, record.start_ticks, signal.SIGKILL)

    def forget(self, replica_id: str) -> None:
        """Drop the record of a process that is gone, and end the children that it left."""
        for pid, mark in process_table.marked(MARK):
            if mark == replica_id:
                _send(pid, signal.SIGKILL)
        self._remove(replica_id)
        self._known.pop(replica_id, None)
        child = self._children.pop(replica_id, None)
        if child is not None:
            # A killed process counts as gone while its other threads still end; only then can its remains be taken.
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(REAP_SECONDS)
        self._health.pop(replica_id, None)

    def close(self) -> None:
        """Give the connections back; engines go on."""
        self._probe.close()

    def _spawn(
        self, argv: Sequence[str], environment: Mapping[str, str], folder: Path, replica_id: str
    ) -> subprocess.Popen[bytes]:
        with self._records.log_path(replica_id).open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - the command is the operator's setting
                list(argv),
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # signals for the control plane are not for its engines
            )

    def _adopted(self, record: ProcessRecord) -> ProcessRecord:
        """A record of an earlier control plane, with the pid that it had no time to write."""
        if record.pid is not None:
            return record
        pid = process_table.find_by_environment(MARK, record.id)
        if pid is None:
            return record
        found = replace(record, pid=pid, start_ticks=process_table.start_ticks(pid))
        self._keep(found)
        return found

    def _end_those_without_record(self) -> None:
        """Ask the engines of this folder to end whose records were lost: nobody would find them again."""
        for pid, mark in process_table.marked(MARK):
            if mark not in self._known and process_table.works_in(pid, self._records.work_folder(mark)):
                logs.get().warning(logs.REPLICA_DIED, replica=mark, detail=f"no record; process {pid} is ended")
                _send(pid, signal.SIGTERM)

    def _replica(self, record: ProcessRecord) -> Replica:
        address = f"{HOST}:{record.port}"
        state, since, detail = self._state(record, address)
        is_draining = state is ReplicaState.DRAINING
        return Replica(
            id=record.id,
            deployment=record.deployment,
            identity=record.identity,
            revision=record.revision,
            address=address,
            state=state,
            state_since=since,
            running_requests=self._probe.running_requests(address) if is_draining else None,
            detail=detail,
            was_asked_to_end=record.draining_since is not None or record.ending_since is not None,
        )

    def _state(self, record: ProcessRecord, address: str) -> tuple[ReplicaState, float, str]:
        if (
            record.pid is None
            or record.start_ticks is None
            or not process_table.is_alive(record.pid, record.start_ticks)
        ):
            child = self._children.get(record.id)
            code = child.poll() if child is not None else None  # also takes a dead child's remains away
            return ReplicaState.DEAD, self._now(), self._last_words(record.id, code)
        if record.ending_since is not None:
            return ReplicaState.ENDING, record.ending_since, ""
        if record.draining_since is not None:
            return ReplicaState.DRAINING, record.draining_since, ""
        health = self._look(record.id, address)
        state = ReplicaState.HEALTHY if health.is_healthy else ReplicaState.STARTING
        return state, health.since, health.detail

    def _look(self, replica_id: str, address: str) -> _Health:
        health = self._health.setdefault(replica_id, _Health(since=self._now()))
        problem = self._probe.health(address)
        if problem is None:
            if not health.is_healthy:
                health.is_healthy, health.since = True, self._now()
            health.failures, health.detail = 0, ""
            return health
        health.failures += 1
        health.detail = problem
        if health.is_healthy and health.failures >= LOST_AFTER_FAILURES:
            health.is_healthy, health.since = False, self._now()
        return health

    def _last_words(self, replica_id: str, code: int | None) -> str:
        ending = "ended" if code is None else f"ended with {code}"
        path = self._records.log_path(replica_id)
        try:
            lines = path.read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return f"{ending}; log {path.name}" + (f": {lines[-1]}" if lines else "")

    def _keep(self, record: ProcessRecord) -> None:
        """Remember a record; one that can't be written now is known here all the same, and holds nothing up."""
        self._known[record.id] = record
        try:
            self._records.write(record)
        except OSError as error:
            logs.get().error(logs.RECORD_NOT_KEPT, replica=record.id, problem=error.strerror, file=error.filename)

    def _remove(self, replica_id: str) -> None:
        try:
            self._records.remove(replica_id)
        except OSError as error:
            logs.get().error(logs.RECORD_NOT_KEPT, replica=replica_id, problem=error.strerror, file=error.filename)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _send(pid: int, number: signal.Signals) -> None:
    ticks = process_table.start_ticks(pid)
    if ticks is not None:
        process_table.send(pid, ticks, number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
