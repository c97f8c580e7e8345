"""The doors to the world: Protocols that adapters implement and tests fake."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from control_plane.records import (
    Condition,
    Document,
    EndpointRecord,
    Kind,
    Launch,
    Phase,
    Replica,
    ReviewRecord,
    ReviewSubject,
    StoredDeployment,
    StoredKey,
    StoredObject,
    StoredToken,
)
from fleet.audit import AuditEntry, AuditEvent, ChainHead
from fleet.facts import AdvisoryData


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """The moment, in UTC."""
        ...


class Deployments(Protocol):
    """Stored deployments and their conditions."""

    def get(self, name: str) -> StoredDeployment | None:
        """One deployment, or ``None``."""
        ...

    def page(self, *, after: str, limit: int) -> Sequence[StoredDeployment]:
        """Deployments with names above ``after``, ascending."""
        ...

    def insert(self, deployment: StoredDeployment) -> None:
        """Store a new one with its conditions."""
        ...

    def replace(self, deployment: StoredDeployment) -> None:
        """Store the next generation of an existing one with its conditions; its state stays."""
        ...

    def delete(self, name: str) -> None:
        """Forget one."""
        ...

    def subjects(self) -> Sequence[ReviewSubject]:
        """What a review of everything looks at, by name."""
        ...

    def generations(self) -> Mapping[str, int]:
        """The version of every deployment."""
        ...

    def one_per_review_key(self) -> Mapping[str, StoredDeployment]:
        """One deployment for each review key."""
        ...

    def set_conditions(self, changes: Iterable[tuple[str, Condition]]) -> None:
        """Store conditions of many deployments."""
        ...

    def set_state(self, name: str, phase: Phase, endpoints: Sequence[EndpointRecord]) -> None:
        """Store where a deployment stands."""
        ...

    def count_by(self, condition: str) -> Mapping[str, int]:
        """How many deployments have each status of a condition type."""
        ...


class Reviews(Protocol):
    """The last review of each review key."""

    def get_many(self, keys: Iterable[str]) -> Mapping[str, ReviewRecord]:
        """The known ones of these keys."""
        ...

    def put_many(self, reviews: Iterable[ReviewRecord]) -> None:
        """Store or replace."""
        ...

    def set_proposal(self, key: str, facts_digest: str, proposal: Document | None, reason: str) -> None:
        """Store a proposal beside the review by the same facts; a review by other facts stays as it is."""
        ...

    def forget_unused(self) -> None:
        """Drop those that no deployment has any more."""
        ...


class Objects(Protocol):
    """Stored objects of one kind: waivers, triage entries or tenants."""

    def get(self, name: str) -> StoredObject | None:
        """One object, or ``None``."""
        ...

    def page(self, *, after: str, limit: int) -> Sequence[StoredObject]:
        """Objects with names above ``after``, ascending."""
        ...

    def insert(self, item: StoredObject) -> None:
        """Store a new one."""
        ...

    def replace(self, item: StoredObject) -> None:
        """Store the next generation of an existing one."""
        ...

    def delete(self, name: str) -> None:
        """Forget one."""
        ...


class Keys(Protocol):
    """Keys of tenants."""

    def get(self, name: str) -> StoredKey | None:
        """One key, or ``None``."""
        ...

    def page(self, *, after: str, limit: int, tenant: str | None = None) -> Sequence[StoredKey]:
        """Keys with names above ``after``, ascending; of one tenant if given."""
        ...

    def insert(self, key: StoredKey) -> None:
        """Store a new one."""
        ...

    def delete(self, name: str) -> None:
        """Forget one."""
        ...


class Tokens(Protocol):
    """Tokens of the admin API."""

    def by_prefix(self, prefix: str) -> StoredToken | None:
        """The token that starts so, or ``None``."""
        ...

    def put(self, token: StoredToken) -> StoredToken | None:
        """Store or replace by name; gives what was replaced."""
        ...


class Audit(Protocol):
    """The append-only log."""

    def append(self, entries: Sequence[AuditEntry]) -> Sequence[AuditEvent]:
        """Continue the chain."""
        ...

    def page(self, *, after: int, limit: int) -> Sequence[AuditEvent]:
        """Events with sequences above ``after``, ascending."""
        ...

    def head(self) -> ChainHead:
        """Where the chain ends."""
        ...


class UnitOfWork(Protocol):
    """One transaction; leaving it without an exception commits."""

    deployments: Deployments
    reviews: Reviews
    waivers: Objects
    triage: Objects
    tenants: Objects
    keys: Keys
    tokens: Tokens
    audit: Audit

    def next_generation(self, kind: Kind, name: str) -> int:
        """The first generation of a new object: above that of any deleted one of the name, so no ETag comes back."""
        ...

    def bury(self, kind: Kind, name: str, generation: int) -> None:
        """Remember the last generation of a deleted object."""
        ...

    def discard(self) -> None:
        """Store nothing of this unit: what a dry run does."""
        ...


@dataclass(frozen=True, slots=True)
class Revision:
    """Counters that rise when something of a kind was committed; equal counters mean nothing changed."""

    routes: int = 0
    """Deployments, endpoints, tenants, keys: what the gateway needs."""
    exceptions: int = 0
    """Waivers and triage entries."""

    def plus(self, other: "Revision") -> "Revision":
        """Both counters risen by those of another."""
        return Revision(routes=self.routes + other.routes, exceptions=self.exceptions + other.exceptions)


class Store(Protocol):
    """The database. One writer at a time; readers see committed data alone."""

    def read(self) -> AbstractContextManager[UnitOfWork]:
        """A unit that only reads."""
        ...

    def write(self) -> AbstractContextManager[UnitOfWork]:
        """A unit that may write; it waits for the writer before it."""
        ...

    @property
    def revision(self) -> Revision:
        """What was committed so far by this process."""
        ...

    def problem(self) -> str | None:
        """Why the database can't be used now, or ``None``."""
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

    def restart(self, *, deployment: str) -> None:
        """A dead replica is started again."""
        ...
