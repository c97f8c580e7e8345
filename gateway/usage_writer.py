"""The thread that makes records of ended requests and writes them to disk, so that no request waits for a disk."""

import queue
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable

import structlog
from pydantic import ValidationError

from gateway.admitted import Ended
from gateway.tickets import TicketNumbers
from gateway.usage_metrics import Outcome, UsageMetrics
from gateway.usage_records import line_of, record_of
from gateway.usage_settings import UsageSettings
from gateway.usage_spool import UsageSpool

RETRY_SECONDS = 1.0
STOP_SECONDS = 5.0
_log = structlog.get_logger("gateway.usage")


class UsageWriter:
    """Takes ended requests from the event loop, without waiting, and appends their records to the spool."""

    def __init__(
        self,
        spool: UsageSpool,
        metrics: UsageMetrics,
        settings: UsageSettings,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self._spool = spool
        self._metrics = metrics
        self._settings = settings
        self._new_id = new_id or TicketNumbers(secrets.token_bytes)
        self._ended: queue.SimpleQueue[Ended | None] = queue.SimpleQueue()
        self._lines: deque[bytes] = deque()
        """Records that are not on disk yet."""
        self._is_stopping = threading.Event()
        self._due = 0.0
        """When the file that is being written should be brought."""
        self._problem: str | None = None
        self._thread = threading.Thread(target=self._run, name="usage-writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def ended(self, ended: Ended) -> None:
        """Note a request; this is what its path pays."""
        if ended.settled is None:
            return  # it was charged before
        if self._ended.qsize() >= self._settings.max_waiting_records:
            self._metrics.count(Outcome.DROPPED_IN_MEMORY)
            return
        self._ended.put(ended)

    def stop(self) -> None:
        """Write what is left and end; it may take as long as a disk does."""
        self._is_stopping.set()
        self._ended.put(None)
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            self._wait()
            self._gather()
            self._write()
            if self._spool.has_begun and time.monotonic() >= self._due:
                self._spool.close()
        self._gather()
        self._write()
        self._spool.close()

    def _wait(self) -> None:
        """Until something came, and then a little longer, so that one sync serves many."""
        seconds = None
        if self._lines:
            seconds = RETRY_SECONDS
        elif self._spool.has_begun:
            seconds = max(0.0, self._due - time.monotonic())
        try:
            first = self._ended.get(timeout=seconds)
        except queue.Empty:
            return
        self._take(first)
        self._is_stopping.wait(self._settings.sync_seconds)

    def _gather(self) -> None:
        while True:
            try:
                self._take(self._ended.get_nowait())
            except queue.Empty:
                return

    def _take(self, ended: Ended | None) -> None:
        if ended is None or ended.settled is None:
            return
        if len(self._lines) >= self._settings.max_waiting_records:
            self._metrics.count(Outcome.DROPPED_IN_MEMORY)
            return
        try:
            record = record_of(ended, ended.settled, self._new_id())
        except ValidationError as error:
            self._metrics.count(Outcome.MALFORMED)
            places = sorted({".".join(map(str, item["loc"])) for item in error.errors(include_input=False)})
            _log.error("usage.malformed", places=places, deployment=ended.deployment)
            return
        self._lines.append(record.model_dump_json().encode() + b"\n")
        if self._settings.is_logged:
            _log.info("request.ended", **line_of(record, ended))

    def _write(self) -> None:
        """Bring what waits to the disk, or keep it for the next time."""
        lines = list(self._lines)
        room = self._spool.room_for(lines)
        if room < len(lines):
            self._metrics.count(Outcome.DROPPED_ON_DISK, len(lines) - room)
            self._report("the spool is full: usage.max_spool_bytes is reached")
        if not self._spool.has_begun:
            self._due = time.monotonic() + self._settings.batch_seconds
        try:
            self._spool.append(lines[:room])
        except OSError as error:
            self._metrics.disk_failed()
            self._report(error.strerror or type(error).__name__)
            # What was written before the failure is dropped as a duplicate by its id.
            self._lines = deque(lines[:room])
            return
        self._lines.clear()
        if room == len(lines) and lines and self._problem is not None:
            _log.info("usage.written_again")
            self._problem = None

    def _report(self, problem: str) -> None:
        """Say a problem once, not at every try."""
        if problem != self._problem:
            _log.error("usage.not_written", problem=problem, waiting=len(self._lines))
        self._problem = problem
