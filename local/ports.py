"""Free ports on the loopback address."""

import random
import socket
from collections.abc import Iterable

from local.errors import LocalFleetError

HOST = "127.0.0.1"
# Below the range from which Linux takes the ports of outgoing connections (32768-60999), so that none of those can
# take a port between the choice and the start.
FIRST_PORT, LAST_PORT = 20_000, 32_000


def is_free(port: int, *, host: str = HOST) -> bool:
    """Whether a server could listen there now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, port))
        except OSError:
            return False
    return True


def is_listening(port: int, *, host: str = HOST, timeout_seconds: float = 1.0) -> bool:
    """Whether somebody accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=timeout_seconds):
            return True
    except OSError:
        return False


def pick(count: int, *, chance: random.Random, wished: Iterable[int | None] = ()) -> tuple[int, ...]:
    """So many different free ports; ``wished`` come first, ``None`` among them = any.

    Raises:
        LocalFleetError: a wished port is in use, or too few ports are free.
    """
    wishes = [*wished, *([None] * count)][:count]
    for port in wishes:
        if port is not None and not is_free(port):
            raise LocalFleetError(
                f"port {port} on {HOST} is in use by another program; name another port, or none to get a free one"
            )
    taken = {port for port in wishes if port is not None}
    if len(taken) < sum(port is not None for port in wishes):
        raise LocalFleetError(f"one port is named twice: {sorted(taken)}; name different ports, or none")
    return tuple(port if port is not None else _free_port(taken, chance) for port in wishes)


def _free_port(taken: set[int], chance: random.Random) -> int:
    span = LAST_PORT - FIRST_PORT
    start = chance.randrange(span)
    for offset in range(span):
        port = FIRST_PORT + (start + offset) % span
        if port not in taken and is_free(port):
            taken.add(port)
            return port
    raise LocalFleetError(f"no free port between {FIRST_PORT} and {LAST_PORT} on {HOST}; end some programs")
