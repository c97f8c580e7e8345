"""The folders, files and sockets of a gateway: made, kept private, and named where they can't be used."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.atomic_file import READABLE, write_atomically
from gateway.errors import GatewayError
from gateway.settings import GatewaySettings

BACKLOG = 4096
"""Connections that may wait to be accepted: Envoy makes one for each request of a burst, and a full queue refuses."""


def write_where_other(path: Path, data: bytes) -> None:
    """Write a file unless it is so already: a gateway that starts again must not need room on a full disk."""
    with suppress(OSError):
        if path.read_bytes() == data:
            return
    write_atomically(path, data, mode=READABLE)


def prepare_folders(settings: GatewaySettings) -> None:
    """Make the folders, and take away what says that a gateway is ready; raises OSError."""
    settings.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings.endpoints_path.parent.mkdir(exist_ok=True)
    settings.socket_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings.ready_file.parent.mkdir(parents=True, exist_ok=True)
    settings.ready_file.unlink(missing_ok=True)


def keep_private(path: Path) -> None:
    """Let nobody else use a socket: Envoy is of the same user."""
    path.chmod(0o600)


def remove_dead_socket(path: Path) -> None:
    """Remove what a killed gateway left; refuse where a living one listens."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise GatewayError(f"socket_path {path} cannot be used: {error.strerror}") from error
    raise GatewayError(f"another gateway listens on {path}; stop it or set another socket_path")


@contextmanager
def named_errors(settings: GatewaySettings) -> Iterator[None]:
    """Say of a file that can't be used which it is and what would be right."""
    try:
        yield
    except OSError as error:
        place = error.filename or settings.socket_path
        raise GatewayError(
            f"{place} cannot be used: {error.strerror}; state_dir is {settings.state_dir}. "
            "Give folders that this user may write, on a disk with space"
        ) from error
