"""What a fleet runs, on disk: written whole or not at all, so that any later command can end it."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from fleet.value import Value
from local.errors import LocalFleetError, RecordUnreadable
from local.identity import ProcessIdentity


class ProcessRecord(Value):
    """One process of the fleet."""

    name: str
    identity: ProcessIdentity
    argv: tuple[str, ...]
    ports: tuple[int, ...] = ()
    probes: tuple[str, ...] = ()
    """Where it answers when it is well: ``http://...`` or ``unix:PATH``."""
    log: str
    started_at: str
    restarts: int = 0


class FleetRecord(Value):
    """One fleet."""

    format: Literal[1] = 1
    state: Literal["starting", "running", "ending"]
    supervisor: ProcessIdentity
    urls: dict[str, str] = Field(default_factory=dict)
    processes: tuple[ProcessRecord, ...] = ()


def write_text(path: Path, text: str) -> None:
    """Write a file as a whole, readable by its owner alone.

    Raises:
        LocalFleetError: the disk is full, or the folder can't be written.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise LocalFleetError(
            f"{path} can't be written: {reason}. Nothing that stood there before is lost. "
            f"Let this user write {path.parent}, on a disk with space, or give another folder with --state DIR."
        ) from None


def write(path: Path, record: FleetRecord) -> None:
    """Keep the record; raises `LocalFleetError`."""
    write_text(path, record.model_dump_json(indent=2) + "\n")


def read(path: Path) -> FleetRecord | None:
    """The record; ``None`` = no fleet is recorded there.

    Raises:
        RecordUnreadable: the file is there and can't be read.
    """
    try:
        return FleetRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise RecordUnreadable(path, str(error).splitlines()[0]) from None


def remove(path: Path) -> None:
    """Remove a record, also one that is none; raises `LocalFleetError`."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise LocalFleetError(f"{path} can't be removed: {error.strerror or error}") from None


class EngineRecord(Value):
    """One engine that the control plane started, as far as the supervisor needs it."""

    name: str
    identity: ProcessIdentity
    port: int | None = None


def engines(folder: Path) -> tuple[EngineRecord, ...]:
    """The engines that the control plane recorded in a folder; a file that can't be read is left out."""
    return tuple(sorted(_engines(folder), key=lambda engine: engine.name))


def _engines(folder: Path) -> Iterator[EngineRecord]:
    for path in folder.glob("*.process.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads(path.read_bytes())
            identity = ProcessIdentity(pid=int(found["pid"]), start_ticks=int(found["start_ticks"]))
            yield EngineRecord(name=str(found["id"]), identity=identity, port=int(found["port"]))
