"""The database: one writer at a time, readers see committed data alone."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from control_plane.ports.rows import Audit, Deployments, FetchedKeySets, Keys, Objects, Reviews, Tokens
from control_plane.ports.usage import Usage
from control_plane.records import Kind


class UnitOfWork(Protocol):
    """One transaction; leaving it without an exception commits."""

    deployments: Deployments
    reviews: Reviews
    waivers: Objects
    triage: Objects
    tenants: Objects
    prices: Objects
    token_issuers: Objects
    routes: Objects
    output_filters: Objects
    keys: Keys
    fetched_keys: FetchedKeySets
    tokens: Tokens
    audit: Audit
    usage: Usage

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
    """Deployments, endpoints, tenants, keys, prices, issuers, routes, filters: what the gateway needs."""
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
