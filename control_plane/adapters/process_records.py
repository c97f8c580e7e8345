"""Records of engine processes: one JSON file each, so that a new control plane finds what an old one started."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

SUFFIX = ".process.json"


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One engine process. ``local`` and people read these files too: the names are a contract."""

    id: str
    deployment: str
    identity: str
    engine: str
    revision: str
    port: int
    created: float
    """Unix seconds."""
    pid: int | None = None
    """``None`` = it was about to be started when this was written."""
    start_ticks: int | None = None
    """Field 22 of ``/proc/PID/stat``: with the pid it names exactly one process."""
    draining_since: float | None = None
    ending_since: float | None = None


class ProcessRecords:
    """The records of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def log_path(self, replica_id: str) -> Path:
        """Where an engine's output goes."""
        return self._folder / f"{replica_id}.log"

    def work_folder(self, replica_id: str) -> Path:
        """Where an engine runs and finds its files."""
        return self._folder / f"{replica_id}.files"

    def all(self) -> list[ProcessRecord]:
        """Every readable record, oldest first."""
        found = [record for path in self._folder.glob(f"*{SUFFIX}") if (record := _read(path)) is not None]
        return sorted(found, key=lambda record: (record.created, record.id))

    def write(self, record: ProcessRecord) -> None:
        """Store or replace, in one step."""
        path = self._path(record.id)
        draft = path.with_suffix(".draft")
        try:
            draft.write_text(json.dumps(asdict(record), indent=1))
            os.replace(draft, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(path)) from error

    def remove(self, replica_id: str) -> None:
        """Drop the record and the files of an engine; its log stays."""
        self._path(replica_id).unlink(missing_ok=True)
        folder = self.work_folder(replica_id)
        if folder.is_dir():
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()

    def _path(self, replica_id: str) -> Path:
        return self._folder / f"{replica_id}{SUFFIX}"


def _read(path: Path) -> ProcessRecord | None:
    try:
        return ProcessRecord(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None
