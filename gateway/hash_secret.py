"""The secret behind the letters that stand for a value in mode `hash`: without it nobody can try values out."""

import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.atomic_file import PRIVATE, write_atomically
from gateway.errors import GatewayError

FILE_NAME = "hash-secret"
SECRET_BYTES = 32


def read_secret(file: Path) -> bytes:
    """The secret that several gateways share, so that a value has the same letters at each of them."""
    try:
        secret = file.read_bytes().strip()
    except OSError as error:
        raise GatewayError(f"hash_secret_file {file} cannot be read: {error.strerror}") from error
    if len(secret) < SECRET_BYTES:
        raise GatewayError(f"hash_secret_file {file} holds {len(secret)} bytes; at least {SECRET_BYTES} random ones")
    return secret


def own_secret(state_dir: Path) -> bytes:
    """The secret of this gateway alone, made at its first start and kept through the next ones; raises OSError.

    Workers that start at once have one: who comes second finds what the first one made.
    """
    file = state_dir / FILE_NAME
    with _alone_in(state_dir):
        with suppress(FileNotFoundError):
            kept = file.read_bytes()
            if len(kept) == SECRET_BYTES:
                return kept
        secret = secrets.token_bytes(SECRET_BYTES)
        write_atomically(file, secret, mode=PRIVATE)
        return secret


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """While this lasts, nobody else is in here; the kernel lets go of what a killed process held."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def conversation_secret(secret: bytes, conversation: bytes) -> bytes:
    """The key of one conversation: a value has the same letters in all of its answers, and other ones elsewhere."""
    return hashlib.blake2b(conversation, key=hashlib.sha256(secret).digest(), digest_size=32).digest()
