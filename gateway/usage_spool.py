"""Usage records on disk until the control plane has them: files of lines, written in turn, brought and removed in turn.

A record that was synced survives whatever ends the gateway. A file whose last line was cut is read up to there: the
lines before it count. Each file is one batch, so that a file is there or it was taken.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from gateway.usage_settings import MOST_RECORDS

_SUFFIX = ".jsonl"
_SET_ASIDE = ".refused"
_MOST_SET_ASIDE = 10
MOST_FILE_BYTES = 400 * 1024
"""Of one file, and so of one batch."""


class UsageSpool:
    """The files of one folder; one thread writes, another reads and removes."""

    def __init__(self, folder: Path, max_bytes: int, now_unix_seconds: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._now = now_unix_seconds
        self._lock = threading.Lock()
        self._whole: deque[tuple[Path, int]] = deque()
        """Files that nobody writes any more, the oldest first, with their sizes."""
        self._number = 0
        self._path: Path | None = None
        self._descriptor = -1
        self._bytes = 0
        self._records = 0

    def open(self) -> None:
        """Take over what an earlier gateway left; raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        found = sorted(path for path in self._folder.iterdir() if path.suffix == _SUFFIX and path.stem.isdecimal())
        self._whole = deque((path, path.stat().st_size) for path in found)
        self._number = max((int(path.stem) for path in self._folder.iterdir() if path.stem.isdecimal()), default=0)

    @property
    def size_bytes(self) -> int:
        """Of all that waits."""
        with self._lock:
            return self._bytes + sum(size for _, size in self._whole)

    @property
    def has_begun(self) -> bool:
        """Whether a file is being written."""
        return self._path is not None

    def age_seconds(self) -> float:
        """How long the oldest file waits since it was last written."""
        oldest = self.oldest()
        try:
            return 0.0 if oldest is None else max(0.0, self._now() - oldest.stat().st_mtime)
        except OSError:
            return 0.0

    def room_for(self, lines: Sequence[bytes]) -> int:
        """How many of the lines may still be written."""
        left = self._max_bytes - self.size_bytes
        for number, line in enumerate(lines):
            left -= len(line)
            if left < 0:
                return number
        return len(lines)

    def append(self, lines: Sequence[bytes]) -> None:
        """Write lines and sync them; raises OSError, and then none of them is there but in a file's cut end."""
        while lines:
            if self._path is None:
                self._begin()
            some = self._fitting(lines)
            self._write(b"".join(some))
            self._records += len(some)
            lines = lines[len(some) :]
            if lines or self._records >= MOST_RECORDS:
                self.close()

    def close(self) -> None:
        """End the file that is being written, so that it can be brought."""
        if self._path is None:
            return
        with suppress(OSError):
            os.close(self._descriptor)
        with self._lock:
            self._whole.append((self._path, self._bytes))
            self._path, self._bytes, self._records = None, 0, 0

    def oldest(self) -> Path | None:
        """The file to bring next."""
        with self._lock:
            return self._whole[0][0] if self._whole else None

    def remove(self, path: Path) -> None:
        """It was taken, or it holds nothing; raises OSError and keeps it."""
        path.unlink(missing_ok=True)
        self._forget(path)

    def set_aside(self, path: Path) -> None:
        """Nobody takes it, and the files after it should not wait: it is kept for people, as one of a few."""
        path.replace(path.with_suffix(_SET_ASIDE))
        self._forget(path)
        aside = sorted(other for other in self._folder.iterdir() if other.suffix == _SET_ASIDE)
        for other in aside[:-_MOST_SET_ASIDE]:
            other.unlink(missing_ok=True)

    def _forget(self, path: Path) -> None:
        with self._lock:
            self._whole = deque(item for item in self._whole if item[0] != path)

    def _begin(self) -> None:
        path = self._folder / f"{self._number + 1:012d}{_SUFFIX}"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._number += 1
        self._path, self._bytes, self._records = path, 0, 0
        with suppress(OSError):  # the name of the new file, where the file system does so
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _fitting(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """The lines that the file takes; one at least, so that it goes on."""
        room, count = MOST_FILE_BYTES - self._bytes, 0
        for line in lines[: MOST_RECORDS - self._records]:
            room -= len(line)
            if room < 0 and count:
                break
            count += 1
        return lines[:count]

    def _write(self, data: bytes) -> None:
        before = self._bytes
        try:
            written = 0
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
            os.fsync(self._descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._descriptor, before)
            self.close()
            raise
        with self._lock:
            self._bytes = before + len(data)


def lines_of(path: Path) -> list[bytes]:
    """The whole lines of a file; raises OSError."""
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [line for line in whole.split(b"\n") if line]
