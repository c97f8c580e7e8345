"""What is kept, kind by kind: the Protocols of the rows behind one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from control_plane.records import (
    Condition,
    Document,
    EndpointRecord,
    FetchedKeys,
    Phase,
    ReviewRecord,
    ReviewSubject,
    StoredDeployment,
    StoredKey,
    StoredObject,
    StoredToken,
)
from fleet.audit import AuditEntry, AuditEvent, ChainHead


class Deployments(Protocol):
    """Stored deployments and their conditions."""

    def get(self, name: str) -> StoredDeployment | None:
        """One deployment, or ``None``."""
        ...

    def page(self, *, after: str, limit: int, with_documents: bool = True) -> Sequence[StoredDeployment]:
        """Deployments with names above ``after``, ascending; without documents these are empty, and it is quick."""
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
    """Stored objects of one kind, such as waivers, tenants or prices."""

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

    def replace(self, key: StoredKey) -> None:
        """Store the next generation of an existing one."""
        ...

    def delete(self, name: str) -> None:
        """Forget one."""
        ...


class FetchedKeySets(Protocol):
    """Public keys of token issuers that were read from an address."""

    def all(self) -> Sequence[FetchedKeys]:
        """What is kept of each issuer that has an address, by name."""
        ...

    def put(self, fetched: FetchedKeys) -> None:
        """Store or replace."""
        ...

    def delete(self, issuer: str) -> None:
        """Forget those of an issuer."""
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
