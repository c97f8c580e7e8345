"""Files are written as a whole or not at all: a reader, a crash or a full disk never meets half of one."""

import os
from pathlib import Path

from sources.errors import SourceError


def write_whole(path: Path, data: bytes) -> None:
    """Put the data at the path; what stood there stays until the new file is complete on disk.

    Raises:
        SourceError: the folder is not there or not writable, or the disk is full; nothing is left behind.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(partial, path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise SourceError(f"{path}: can't be written ({error.strerror or error}); the old file is unchanged") from error
