"""The advisory feed of folders: OSV files that are read again when their name, size or time changes."""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from control_plane.ports import Clock, FeedError
from fleet.facts import AdvisoryData, Quarantined
from sources import osv_folder, snapshot
from sources.assemble import assemble, combine
from sources.companions import Published
from sources.errors import SourceError
from sources.osv_folder import Scan

_READ_SUFFIXES = (".json", ".zip")
Signature = tuple[str, int, int, int]
"""Path, modification time in nanoseconds, size, inode."""


class FolderFeed:
    """Folders of records beside the bundled snapshot, or instead of it."""

    def __init__(self, folders: Sequence[Path], *, use_bundled: bool, clock: Clock) -> None:
        self._folders = tuple(folders)
        self._use_bundled = use_bundled
        self._clock = clock
        self._scans: dict[Signature, Scan] = {}

    def fingerprint(self) -> str:
        """Changes with any file's name, size or time; raises `FeedError`."""
        return hashlib.sha256(repr(self._signatures()).encode()).hexdigest()

    def read(self) -> AdvisoryData:
        """The data of all folders; only files that changed are read again. Raises `FeedError`."""
        layers = [snapshot.bundled()] if self._use_bundled else []
        if self._folders:
            layers.append(self._folder_layer())
        if not layers:
            return AdvisoryData(source="no advisory source is set")
        return layers[0] if len(layers) == 1 else combine(layers)

    def _folder_layer(self) -> AdvisoryData:
        signatures = self._signatures()
        self._scans = {item: self._scans.get(item) or _scan(Path(item[0])) for item in signatures}
        scans = list(self._scans.values())
        labels = {key: label for scan in scans for key, label in scan.labels.items()}
        return assemble(
            (record for scan in scans for record in scan.records),
            labels=labels or snapshot.bundled_labels(),
            published=_published(scans),
            quarantined=[item for scan in scans for item in scan.quarantined],
            unknown_keys_ignored=sum(scan.unknown_keys for scan in scans),
            retrieved=self._clock.now().date(),
            source=", ".join(folder.name for folder in self._folders),
        )

    def _signatures(self) -> tuple[Signature, ...]:
        found: list[Signature] = []
        for folder in self._folders:
            found += _files_below(folder)
        return tuple(sorted(found))


def _files_below(folder: Path) -> Iterable[Signature]:
    if not folder.is_dir():
        raise FeedError(f"the advisory folder {folder} is not there")
    for root, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith(".") and name.lower().endswith(_READ_SUFFIXES):
                yield _signature(os.path.join(root, name))


def _signature(path: str) -> Signature:
    """What changes with a file; one that can't be looked at (gone again, a broken link) counts and hides no other."""
    try:
        status = os.stat(path)
    except OSError:
        return (path, 0, -1, 0)
    return (path, status.st_mtime_ns, status.st_size, status.st_ino)


def _scan(path: Path) -> Scan:
    """The records of one file; one that can't be opened is quarantined, and the rest of the feed goes on."""
    try:
        return osv_folder.scan([path])
    except SourceError as error:
        return Scan(quarantined=[Quarantined(source=path.name, reason=str(error))])


def _refuse(error: OSError) -> None:
    raise FeedError(f"the advisory folder {error.filename} can't be listed: {error.strerror}")


def _published(scans: Sequence[Scan]) -> Published:
    bundled = snapshot.bundled()
    found = [scan.published for scan in scans if scan.published is not None]
    if not found:
        return Published(bundled.published, bundled.published_retrieved)
    versions = {package: listed for item in found for package, listed in item.versions.items()}
    return Published(versions, min((item.retrieved for item in found if item.retrieved), default=""))
