"""The short folder of a socket whose fleet lies too deep: private, and gone with the supervisor that made it."""

import contextlib
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from local.errors import LocalFleetError
from local.identity import ProcessIdentity, identify_child, is_running
from local.layout import SOCKET_FOLDER, Layout

OWNER = "supervisor.json"
TRIES = 3
"""Another start may take an empty folder away before its owner stands in it."""


@contextlib.contextmanager
def made(layout: Layout) -> Iterator[None]:
    """The folder of the fleet's socket inside, nothing of it afterwards; the caller holds the fleet's lock.

    Raises:
        LocalFleetError: it can't be made, or belongs to somebody else.
    """
    sweep()
    folder = layout.socket.parent
    if folder == layout.gateway:
        yield
        return
    own = identify_child(os.getpid())
    _make(folder, own)
    try:
        yield
    finally:
        # A fleet that was started in a folder of the same name meanwhile has its own name in it.
        if _owner(folder) == own:
            shutil.rmtree(folder, ignore_errors=True)


def sweep() -> None:
    """Take away the folders of this user's fleets whose supervisor is dead and whose gateway no longer answers."""
    pattern = re.compile(re.escape(f"{SOCKET_FOLDER}-{os.getuid()}-") + "[0-9a-f]{16}")
    for folder in Path(tempfile.gettempdir()).iterdir():
        if pattern.fullmatch(folder.name) and _is_own_folder(folder) and not _is_used(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _make(folder: Path, own: ProcessIdentity) -> None:
    try:
        for tries_left in reversed(range(TRIES)):
            folder.mkdir(mode=0o700, exist_ok=True)
            if not _is_own_folder(folder):
                raise PermissionError(13, "it belongs to another user, or is a link", str(folder))
            folder.chmod(0o700)
            try:
                (folder / OWNER).write_text(own.model_dump_json(), encoding="utf-8")
            except FileNotFoundError:
                if not tries_left:
                    raise
            else:
                return
    except OSError as error:
        raise LocalFleetError(
            f"the folder {folder} of the gateway's socket can't be used: {error.strerror or error}. "
            "Remove it, or give a shorter folder with --state DIR."
        ) from None


def _is_own_folder(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _is_used(folder: Path) -> bool:
    """Whether its supervisor runs, or at least its gateway answers."""
    owner = _owner(folder)
    return (owner is not None and is_running(owner)) or _is_answered(folder)


def _owner(folder: Path) -> ProcessIdentity | None:
    try:
        return ProcessIdentity.model_validate_json((folder / OWNER).read_bytes())
    except (OSError, ValidationError):
        return None


def _is_answered(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
        asked.settimeout(1)
        try:
            asked.connect(str(folder / "decision.sock"))
        except OSError:
            return False
    return True
