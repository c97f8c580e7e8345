"""What the control plane stores and observes, as frozen values; documents are plain JSON."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fleet.engine import CommandLine

Document = dict[str, Any]
"""A JSON object as it crosses the API."""


class Kind(StrEnum):
    """The kinds of object with a name of their own."""

    DEPLOYMENT = "Deployment"
    WAIVER = "Waiver"
    TRIAGE = "Triage"
    TENANT = "Tenant"
    KEY = "Key"
    PRICE = "Price"
    TOKEN_ISSUER = "TokenIssuer"
    ROUTE = "Route"
    OUTPUT_FILTER = "OutputFilter"
    TOKEN = "Token"
    ADVISORY_DATA = "AdvisoryData"


class Scope(StrEnum):
    """What a token may do; each scope of people holds the ones before it, the gateway's stands alone."""

    GATEWAY = "gateway"
    """Read what gateways work from, and bring usage records: nothing else, and nobody else may bring them."""
    READER = "reader"
    OPERATOR = "operator"
    SECURITY_ADMIN = "security-admin"

    @property
    def rank(self) -> int:
        """0 for reader up to 2 for security-admin; -1 for a gateway."""
        return list(Scope).index(self) - 1

    def holds(self, other: "Scope") -> bool:
        """Whether it may do what another may."""
        return self is other or (Scope.GATEWAY not in (self, other) and self.rank >= other.rank)


class Phase(StrEnum):
    """Where a deployment stands in one word."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    DEGRADED = "Degraded"
    FAILED = "Failed"


class ConditionType(StrEnum):
    """What a condition is about."""

    COMPLIANT = "Compliant"
    READY = "Ready"


class Truth(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    """One statement about an object, in the shape of Kubernetes."""

    type: ConditionType
    status: Truth
    reason: str
    message: str
    last_transition: str
    """When ``status`` last changed, ISO 8601."""
    observed_generation: int

    def document(self) -> Document:
        """The condition as it crosses the API."""
        return {
            "type": self.type.value,
            "status": self.status.value,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": self.last_transition,
            "observedGeneration": self.observed_generation,
        }


@dataclass(frozen=True, slots=True)
class Route:
    """What the gateway has to know of a deployment."""

    model: str
    tenants: tuple[str, ...]
    output_filter: str


@dataclass(frozen=True, slots=True)
class EndpointRecord:
    """One running engine of a deployment."""

    address: str
    identity: str
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class StoredDeployment:
    """A pinned manifest with its version and its state."""

    name: str
    generation: int
    document: Document
    """The pinned manifest as JSON."""
    identity: str
    engine: str
    """The engine, or the hosted one."""
    review_key: str
    """Deployments with equal keys get equal reviews."""
    route: Route
    managed_by: str | None
    """The environment whose files own it; ``None`` = the API does."""
    created: str
    updated: str
    phase: Phase = Phase.PENDING
    endpoints: tuple[EndpointRecord, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class ReviewRecord:
    """What the last review said about every deployment with one review key."""

    review_key: str
    facts_digest: str
    violations: tuple[Document, ...]
    proposal: Document | None
    """The pinned manifest of one member at a better version; ``None`` = none is needed or none exists."""
    proposal_reason: str


@dataclass(frozen=True, slots=True)
class ReviewSubject:
    """What a review of everything has to know of a deployment."""

    name: str
    generation: int
    review_key: str
    compliant: Condition | None


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A waiver, triage entry, tenant, price, token issuer, route or output filter with its version."""

    name: str
    generation: int
    spec: Document
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class EndingKey:
    """What a rotated key was before: it goes on until it ends."""

    generation: int
    prefix: str
    sha256: str
    ends_unix_seconds: int


@dataclass(frozen=True, slots=True)
class StoredKey:
    """An API key of a tenant; the key itself is not kept."""

    name: str
    tenant: str
    prefix: str
    sha256: str
    created: str
    expires_unix_seconds: int | None
    updated: str
    generation: int = 1
    """Rises when it is rotated."""
    models: tuple[str, ...] = ()
    """Public models that it may ask for; empty = all of the tenant's."""
    pins_arms: bool = False
    """Whether its requests may say which arm serves them."""
    ending: tuple[EndingKey, ...] = ()
    """Its earlier generations that may still be in use."""


@dataclass(frozen=True, slots=True)
class FetchedKeys:
    """What was last read from the address of an issuer's public keys."""

    issuer: str
    """The name of the stored issuer."""
    url: str
    keys: tuple[Document, ...]
    """The last good ones."""
    fetched: str | None
    """When they were read; ``None`` = never yet."""
    problem: str | None
    """Why the last attempt brought none."""


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A token of the admin API; the token itself is not kept."""

    name: str
    prefix: str
    sha256: str
    scope: Scope
    created: str


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, in which request and why."""

    name: str
    scope: Scope
    request_id: str | None = None
    reason: str | None = None


SYSTEM_SCOPE = Scope.SECURITY_ADMIN


def system_actor(loop: str) -> Actor:
    """A loop of the control plane itself."""
    return Actor(name=f"system:{loop}", scope=SYSTEM_SCOPE)


class ReplicaState(StrEnum):
    """Where one engine process or pod stands."""

    STARTING = "starting"
    HEALTHY = "healthy"
    DRAINING = "draining"
    ENDING = "ending"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Replica:
    """One engine as the cluster sees it."""

    id: str
    deployment: str
    identity: str
    revision: str
    """The digest of what it was started with: another revision is another process."""
    address: str
    state: ReplicaState
    state_since: float
    """Unix seconds."""
    running_requests: int | None = None
    """``None`` = not known."""
    detail: str = ""
    """Why it is dead or not healthy yet."""
    was_asked_to_end: bool = False
    """Whether it drained or was ended before it died."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: one replica of one identity."""

    deployment: str
    identity: str
    engine: str
    version: str
    revision: str
    command: Callable[[int], CommandLine]
    """The engine's command line for a port."""
