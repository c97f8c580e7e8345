"""The world outside: time, advisory feeds, the cluster, metrics."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from control_plane.records import Launch, Replica
from fleet.facts import AdvisoryData


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """The moment, in UTC."""
        ...


class FeedError(Exception):
    """A feed can't be read now; its text says which and why."""


class AdvisoryFeed(Protocol):
    """Where advisories come from."""

    def fingerprint(self) -> str:
        """Changes when a new reading may give other data.

        Raises:
            FeedError: the feed is not there.
        """
        ...

    def read(self) -> AdvisoryData:
        """All data of the feed.

        Raises:
            FeedError: the feed is not there.
        """
        ...


class KeySetError(Exception):
    """The public keys of an issuer can't be read now; its text says why, without the address."""


class KeySets(Protocol):
    """Where the public keys of token issuers are read from."""

    def read(self, url: str) -> bytes:
        """What stands at an address.

        Raises:
            KeySetError: it can't be had.
        """
        ...


class ClusterError(Exception):
    """The cluster can't do it; its text says what and why."""


class Cluster(Protocol):
    """Where engines run."""

    @property
    def runs_engines(self) -> bool:
        """False where deployments are only kept and reviewed."""
        ...

    def observe(self) -> Sequence[Replica]:
        """Every replica that it knows, the dead ones too until they are forgotten."""
        ...

    def cannot_start(self, engine: str) -> str | None:
        """Why an engine can't be started here, or ``None``."""
        ...

    def start(self, launch: Launch) -> None:
        """Start one replica.

        Raises:
            ClusterError: it could not be started.
        """
        ...

    def drain(self, replica_id: str) -> None:
        """Note that a replica gets no new requests."""
        ...

    def end(self, replica_id: str) -> None:
        """Ask a replica to end, by force if it was asked long ago."""
        ...

    def forget(self, replica_id: str) -> None:
        """Drop what is kept of a dead replica."""
        ...

    def close(self) -> None:
        """Give back what was held; engines go on."""
        ...


class Meter(Protocol):
    """What is counted."""

    def request(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """One answered request."""
        ...

    def review(self, *, seconds: float, deployments: int, changed: int) -> None:
        """One review of everything."""
        ...

    def advisory_data(self, *, advisories: int, quarantined: int, retrieved_unix_seconds: float) -> None:
        """New advisory data."""
        ...

    def feed_lost(self, *, is_lost: bool) -> None:
        """Whether the feed can't be read."""
        ...

    def compliance(self, counts: Mapping[str, int]) -> None:
        """Deployments by status of their condition Compliant."""
        ...

    def phases(self, counts: Mapping[str, int]) -> None:
        """Deployments by phase."""
        ...

    def issuers_without_fresh_keys(self, count: int) -> None:
        """Token issuers whose public keys could not be read the last time."""
        ...

    def restart(self, *, deployment: str) -> None:
        """A dead replica is started again."""
        ...
