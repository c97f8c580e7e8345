"""Ports of the loopback for servers that are told theirs before they listen."""

import random
import socket
from contextlib import suppress

_FIRST, _LAST = 10_000, 32_000
"""Below those that systems give to whoever connects: one of these could be taken before its server listens."""


def free_port() -> int:
    """One that nobody listens on, and that two test processes hardly choose at once."""
    chance = random.SystemRandom()
    while True:
        port = chance.randrange(_FIRST, _LAST)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
