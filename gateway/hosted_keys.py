"""The keys of hosted engines: one file each in one folder, read when a key is needed and when its file has changed."""

from pathlib import Path
from typing import NamedTuple

from gateway.errors import GatewayError

_MAX_KEY_BYTES = 4096


class HostedKeyError(GatewayError):
    """A key can't be had; the message names the file and never what is in it."""


class _Read(NamedTuple):
    stamp: tuple[int, int, int]
    key: str


class HostedKeys:
    """The folder of keys."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._read: dict[str, _Read] = {}

    def key(self, reference: str) -> str:
        """The key of this name.

        Raises:
            HostedKeyError: there is no such file, or no key in it.
        """
        if self._folder is None:
            raise HostedKeyError(
                f"the key '{reference}' of a hosted engine has no folder; set hosted_keys_dir in the gateway's settings"
            )
        path = self._folder / reference
        try:
            found = path.stat()
            stamp = (found.st_mtime_ns, found.st_ino, found.st_size)
            read = self._read.get(reference)
            if read is None or read.stamp != stamp:
                read = self._read[reference] = _Read(stamp, _key_in(path))
        except OSError as error:
            raise HostedKeyError(f"the key file {path} can't be read: {error.strerror}") from None
        return read.key


def _key_in(path: Path) -> str:
    with path.open("rb") as file:
        key = file.read(_MAX_KEY_BYTES + 1).decode("latin-1").strip()
    if not (key.isascii() and key.isprintable() and key) or len(key) > _MAX_KEY_BYTES or " " in key:
        raise HostedKeyError(f"the file {path} holds no key; it must hold one line of ASCII without blanks")
    return key
