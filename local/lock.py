"""One supervisor per state folder: a lock that the kernel lets go when its holder dies."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from local.errors import StateInUse


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock inside.

    Raises:
        StateInUse: somebody else holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateInUse(path.parent, _holder(descriptor)) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 20, 0).decode("ascii", errors="replace").strip()
    return f"process {text}" if text.isdigit() else "another process"
