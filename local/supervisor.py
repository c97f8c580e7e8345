"""Starts the rooms in order, starts a dead one again, and ends them in reverse order."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Literal

from local import room as rooms
from local.down import end_marked, end_recorded
from local.ending import end
from local.errors import LocalFleetError, StartFailed, StateLost
from local.identity import identify_child
from local.layout import Layout
from local.record import FleetRecord, write
from local.room import Room, Started
from local.stop_request import StopRequest

POLL_SECONDS = 0.05
FIRST_BACKOFF_SECONDS = 0.2
LAST_BACKOFF_SECONDS = 10.0
SETTLED_SECONDS = 30.0
"""A process that lived so long starts with the first backoff again."""

Tell = Callable[[str], None]


@dataclass(slots=True)
class _Watched:
    room: Room
    started: Started
    since: float
    failures: int = 0
    again_at: float | None = None
    """When it is started again; ``None`` = it runs."""
    ready_by: float | None = None
    """Until when a process that was started again must be ready; ``None`` = it is."""


class Supervisor:
    """Owns the processes of one fleet; ``start``, then ``watch`` or ``watch_in_background``, then ``end``."""

    def __init__(
        self,
        rooms: Sequence[Room],
        layout: Layout,
        *,
        urls: Mapping[str, str],
        environment: Mapping[str, str],
        own_pid: int,
        stop: StopRequest,
        tell: Tell,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rooms = tuple(rooms)
        self._layout = layout
        self._urls = dict(urls)
        self._environment = dict(environment)
        self._own = identify_child(own_pid)
        self._folder = _identity_of(layout.state)
        self._stop = stop
        self._tell = tell
        self._clock = clock
        self._watched: list[_Watched] = []
        self._is_up = False
        self._ending = Event()
        self._thread: Thread | None = None

    @property
    def record(self) -> FleetRecord:
        """What runs now."""
        state: Literal["starting", "running", "ending"] = "running" if self._is_up else "starting"
        if self._ending.is_set():
            state = "ending"
        return FleetRecord(
            state=state,
            supervisor=self._own,
            urls=self._urls,
            processes=tuple(watched.started.record for watched in self._watched),
        )

    def start(self, before: Callable[[Room], bool] = lambda _room: True) -> bool:
        """Start every room and wait until it is ready; ``False`` = somebody asked to end meanwhile.

        ``before`` is called before each room starts; when it gives ``False``, nothing further is started.

        Raises:
            LocalFleetError: a room did not start; call `end` all the same.
        """
        write(self._layout.record, self.record)
        for room in self._rooms:
            if self._is_asked or not before(room) or not self._validate(room):
                return False
            started = self._spawn(room)
            self._watched.append(_Watched(room, started, self._clock()))
            write(self._layout.record, self.record)
            if not self._wait_until_ready(room, started):
                return False
        self._is_up = True
        write(self._layout.record, self.record)
        return True

    def watch(self) -> None:
        """Start dead processes again until somebody asks to end.

        Raises:
            StateLost: the state folder was removed; call `end` all the same.
        """
        while not self._ending.is_set() and not self._stop.wait(POLL_SECONDS):
            if self._is_lost:
                raise StateLost(self._layout.state)
            self._look()

    def watch_in_background(self) -> None:
        """Watch beside other work; `end` ends the watching."""
        self._thread = Thread(target=self._watch_and_tell, name="fleet-watch", daemon=True)
        self._thread.start()

    def _watch_and_tell(self) -> None:
        try:
            self.watch()
        except StateLost as error:
            self._tell(str(error))

    def end(self) -> tuple[str, ...]:
        """End everything in reverse order, the engines too; what could not be ended, in words."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
        graces = {room.name: room.grace_seconds for room in self._rooms}
        left = self._end_children(graces) if self._is_lost else end_recorded(self.record, self._layout, graces=graces)
        for watched in self._watched:
            watched.started.child.poll()
        return left

    @property
    def _is_lost(self) -> bool:
        return _identity_of(self._layout.state) != self._folder

    def _end_children(self, graces: Mapping[str, float]) -> tuple[str, ...]:
        """End what was started here, and the engines unless the folder is another fleet's by now."""
        for watched in reversed(self._watched):
            end([watched.started.record.identity], grace_seconds=graces[watched.room.name])
        return () if self._layout.state.exists() else end_marked(self._layout)[1]

    @property
    def _is_asked(self) -> bool:
        return self._ending.is_set() or self._stop.is_set

    def _spawn(self, room: Room, *, restarts: int = 0) -> Started:
        return rooms.spawn(room, state=self._layout.state, environment=self._environment, restarts=restarts)

    def _validate(self, room: Room) -> bool:
        """Whether the room's own check passed; ``False`` = somebody asked to end meanwhile."""
        if not room.validate:
            return True
        child = rooms.run(room, room.validate, state=self._layout.state, environment=self._environment)
        deadline = self._clock() + room.ready_seconds
        while child.poll() is None and self._clock() < deadline:
            if self._pause():
                end([identify_child(child.pid)], grace_seconds=1.0)
                child.wait()
                return False
        if child.poll() is None:
            end([identify_child(child.pid)], grace_seconds=1.0)
            child.wait()
            raise self._failed(room, f"checking its configuration took more than {room.ready_seconds:g} s")
        if child.returncode != 0:
            raise self._failed(room, f"its configuration is not valid ({' '.join(room.validate)})")
        return True

    def _wait_until_ready(self, room: Room, started: Started) -> bool:
        deadline = self._clock() + room.ready_seconds
        while True:
            ended = started.end_reason()
            if ended:
                raise self._failed(room, ended)
            complaint = rooms.not_ready(room, started)
            if complaint is None:
                return True
            if self._clock() > deadline:
                raise self._failed(room, f"it was not ready after {room.ready_seconds:g} s: {complaint}")
            if self._pause():
                return False

    def _pause(self) -> bool:
        return self._stop.wait(POLL_SECONDS) or self._ending.is_set()

    @staticmethod
    def _failed(room: Room, reason: str) -> StartFailed:
        free = shutil.disk_usage(room.log.parent).free
        return StartFailed(room.name, reason, log=room.log, last_lines=rooms.last_lines(room.log), free_bytes=free)

    def _look(self) -> None:
        for watched in self._watched:
            now = self._clock()
            if watched.again_at is not None:
                if now >= watched.again_at:
                    self._start_again(watched, now)
                continue
            reason = watched.started.end_reason() or self._lateness(watched, now)
            if reason:
                self._schedule(watched, reason, now)

    def _lateness(self, watched: _Watched, now: float) -> str | None:
        """Why a process that was started again counts as failed; ``None`` = it is well, or has time left."""
        if watched.ready_by is None:
            return None
        complaint = rooms.not_ready(watched.room, watched.started)
        if complaint is None:
            watched.ready_by = None
            record = watched.started.record
            self._tell(f"{watched.room.name} runs again (process {record.identity.pid}, start {record.restarts + 1})")
            return None
        return f"it was not ready in time: {complaint}" if now > watched.ready_by else None

    def _schedule(self, watched: _Watched, reason: str, now: float) -> None:
        record = watched.started.record
        end([record.identity], grace_seconds=watched.room.grace_seconds)
        watched.started.child.poll()
        if now - watched.since > SETTLED_SECONDS:
            watched.failures = 0
        delay = min(LAST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2**watched.failures)
        watched.failures += 1
        watched.again_at = now + delay
        name, pid = watched.room.name, record.identity.pid
        self._tell(f"{name} (process {pid}): {reason}; starting it again in {delay:g} s. Log: {watched.room.log}")

    def _start_again(self, watched: _Watched, now: float) -> None:
        try:
            watched.started = self._spawn(watched.room, restarts=watched.started.record.restarts + 1)
            watched.since, watched.again_at = now, None
            watched.ready_by = now + watched.room.ready_seconds
        except LocalFleetError as error:
            self._schedule(watched, str(error).splitlines()[0], now)
            return
        try:
            write(self._layout.record, self.record)
        except LocalFleetError as error:
            self._tell(f"{error} The fleet goes on; 'down' knows its processes by their mark as well.")


def _identity_of(folder: Path) -> tuple[int, int] | None:
    """What tells a folder from another that took its place; ``None`` = there is none."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
