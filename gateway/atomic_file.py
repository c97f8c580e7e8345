"""Files that are there whole or not at all."""

import os
from pathlib import Path

PRIVATE = 0o600
READABLE = 0o644


def write_atomically(path: Path, data: bytes, *, mode: int) -> None:
    """Replace a file by renaming, so that no reader sees a part of it; raises OSError and leaves the old one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(mode)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
