"""One supervisor per state folder: a lock that the kernel lets go when its holder dies."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from local.errors import LocalFleetError, StateInUse


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the lock inside.

    Raises:
        StateInUse: somebody else holds it.
        LocalFleetError: it can't be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LocalFleetError(f"the lock {path} can't be opened: {error.strerror or error}") from None
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


def holder(path: Path) -> int | None:
    """The process that holds the lock; ``None`` = nobody does."""
    try:
        with held(path):
            return None
    except StateInUse as error:
        return error.pid


def _holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, 20, 0).decode("ascii", errors="replace").strip()
    return int(text) if text.isascii() and text.isdigit() else None
