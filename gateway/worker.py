"""One of several workers of a gateway: what it leaves to others, and how it ends with the process that watches it."""

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from fleet.snapshot import GatewaySnapshot
from gateway.endpoints import EndpointFile
from gateway.settings import GatewaySettings
from gateway.store import SnapshotStore
from gateway.token_lease import Share
from gateway.worker_sockets import WorkerSockets, sockets_of, worker_settings


@dataclass(frozen=True, slots=True)
class Worker:
    """Which of how many it is."""

    number: int
    whole: GatewaySettings
    """Of the gateway; its own places are in `settings`."""

    @property
    def settings(self) -> GatewaySettings:
        """With the places of this worker."""
        return worker_settings(self.whole, self.number)

    @property
    def sockets(self) -> WorkerSockets:
        """What Envoy is told of it."""
        return sockets_of(self.whole)[self.number]

    @property
    def share(self) -> Share:
        """Its part of what is divided among the workers."""
        return Share(self.whole.workers, self.number)

    def endpoints(self) -> EndpointFile:
        """The file that Envoy watches, which the first worker writes."""
        return (
            EndpointFile(self.whole.endpoints_path) if self.number == 0 else _ReadEndpoints(self.whole.endpoints_path)
        )

    def store(self) -> SnapshotStore:
        """The last good snapshot, which the first worker keeps."""
        return SnapshotStore(self.whole.snapshot_path) if self.number == 0 else _ReadSnapshot(self.whole.snapshot_path)


def watch_parent(told_to_stop: Callable[[], object]) -> None:
    """Stop when standard input ends: whoever watches has gone, in whatever way."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            loop.remove_reader(sys.stdin.fileno())
            told_to_stop()

    loop.add_reader(sys.stdin.fileno(), look)


class _ReadEndpoints(EndpointFile):
    """Of another worker."""

    def show(self, wanted: frozenset[str], now: float) -> None:
        """Another one does."""


class _ReadSnapshot(SnapshotStore):
    """Of another worker."""

    def save(self, snapshot: GatewaySnapshot) -> None:
        """Another one does."""
