"""One program of the fleet: how it is started, and when it is ready."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from local import probe
from local.ending import child_environment
from local.errors import LocalFleetError
from local.identity import identify_child
from local.record import ProcessRecord

LOG_BYTES = 10_000_000
TAIL_LINES = 12
TAIL_BYTES = 8_000


@dataclass(frozen=True, slots=True)
class Room:
    """A program of the fleet."""

    name: str
    argv: tuple[str, ...]
    log: Path
    ports: tuple[int, ...] = ()
    probes: tuple[str, ...] = ()
    """All of them must answer before it counts as ready."""
    ready_file: Path | None = None
    """Written by the program when it listens; ``None`` = the probes alone tell."""
    validate: tuple[str, ...] = ()
    """Run to its end before the first start; it must exit 0."""
    unset: tuple[str, ...] = ()
    """Variables of the environment that the program must not see."""
    ready_seconds: float = 30.0
    grace_seconds: float = 10.0
    """How long it may take to end after TERM."""


@dataclass(slots=True)
class Started:
    """A running child with its record."""

    child: subprocess.Popen[bytes]
    record: ProcessRecord

    def end_reason(self) -> str | None:
        """How it ended; ``None`` = it runs."""
        code = self.child.poll()
        if code is None:
            return None
        return f"it ended with signal {-code}" if code < 0 else f"it ended with exit code {code}"


def spawn(room: Room, *, state: Path, environment: Mapping[str, str], restarts: int = 0) -> Started:
    """Start the program in a session of its own, its output in its log.

    A session of its own keeps the terminal's Ctrl-C away: the supervisor ends its children, in order.

    Raises:
        LocalFleetError: the program is missing, or the log can't be written.
    """
    if room.ready_file is not None:
        room.ready_file.unlink(missing_ok=True)
    child = run(room, room.argv, state=state, environment=environment)
    record = ProcessRecord(
        name=room.name,
        identity=identify_child(child.pid),
        argv=room.argv,
        ports=room.ports,
        probes=room.probes,
        log=str(room.log),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        restarts=restarts,
    )
    return Started(child, record)


def not_ready(room: Room, started: Started) -> str | None:
    """Why the program is not ready yet; ``None`` = it is."""
    if room.ready_file is not None:
        complaint = probe.ready_file_complaint(room.ready_file, started.child.pid)
        if complaint:
            return complaint
    return next(filter(None, map(probe.complaint, room.probes)), None)


def last_lines(log: Path) -> str:
    """The end of a log, for a message."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(f"  {line}" for line in text.splitlines()[-TAIL_LINES:])


def run(room: Room, argv: tuple[str, ...], *, state: Path, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start a program whose output goes to the room's log; raises `LocalFleetError`."""
    if shutil.which(argv[0], path=environment.get("PATH", os.defpath)) is None:
        raise LocalFleetError(
            f"{room.name} can't be started: the program {argv[0]} is missing. 'make install' installs what it needs."
        )
    visible = child_environment(environment, state)
    try:
        if room.log.exists() and room.log.stat().st_size > LOG_BYTES:
            room.log.replace(room.log.with_suffix(".1.log"))
        with room.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - the argv is the room's own, no shell
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=state,
                env={name: word for name, word in visible.items() if name not in room.unset},
                start_new_session=True,
            )
    except OSError as error:
        raise LocalFleetError(
            f"{room.name} can't be started: {error.strerror} ({error.filename}). "
            f"Let this user write {room.log.parent}, on a disk with space, or give another folder with --state DIR."
        ) from None
