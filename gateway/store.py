"""The last good snapshot on disk, for a start without the control plane."""

from pathlib import Path
from typing import NamedTuple

from fleet.snapshot import GatewaySnapshot
from gateway.atomic_file import PRIVATE, write_atomically
from gateway.errors import GatewayError
from gateway.snapshot_reader import SnapshotRefused, read_snapshot


class StoredSnapshot(NamedTuple):
    """A snapshot and when the control plane last confirmed it, as far as the disk knows."""

    snapshot: GatewaySnapshot
    saved_unix_seconds: float


class SnapshotStore:
    """One file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def save(self, snapshot: GatewaySnapshot) -> None:
        """Keep a snapshot; raises OSError and keeps the one before."""
        write_atomically(self._path, snapshot.model_dump_json().encode(), mode=PRIVATE)

    def load(self) -> StoredSnapshot | None:
        """The kept snapshot; ``None`` = none was ever kept."""
        try:
            saved = self._path.stat().st_mtime
            return StoredSnapshot(read_snapshot(self._path.read_bytes()), saved)
        except FileNotFoundError:
            return None
        except (OSError, SnapshotRefused) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise GatewayError(
                f"{self._path} cannot be used: {reason}; the control plane's next one replaces it"
            ) from None
