"""The shapes that cross the API: Kubernetes' metadata, spec and status, closed models for what clients send."""

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from control_plane.services.gateway_settings import Line, TenantSpec, Text
from control_plane.services.keys import LONGEST_OVERLAP_SECONDS
from fleet.manifest import PinnedManifest, PinRecord
from fleet.spec import Name, Spec
from fleet.value import Value
from fleet.violation import Violation
from fleet.waiver import TriageStatus

ApiVersion = Literal["enginehouse.dev/v1"]


class ObjectMeta(Value):
    """What the server knows about an object beside its spec."""

    name: str
    generation: int
    creationTimestamp: datetime
    updateTimestamp: datetime
    labels: dict[str, str] | None = None
    managedBy: str | None = None
    """The environment whose files own it: the API can't change it."""


class ConditionShape(Value):
    """One statement about an object."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    lastTransitionTime: datetime
    observedGeneration: int


class EndpointShape(Value):
    """One running engine."""

    address: str
    identity: str
    draining: bool


class Proposal(Value):
    """The same deployment at a version that the rules accept; PUT it to take it."""

    manifest: PinnedManifest
    reason: str


class DeploymentState(Value):
    """Where a deployment stands."""

    identity: str
    phase: str
    conditions: tuple[ConditionShape, ...]
    endpoints: tuple[EndpointShape, ...]


class DeploymentStatus(DeploymentState):
    """What the control plane says about a deployment."""

    violations: tuple[Violation, ...]
    """Mandatory ones of the last review: an already stored deployment is not ended by them."""
    residuals: tuple[Violation, ...]
    """What stays to be known: violations that only tell."""
    proposal: Proposal | None
    noProposalReason: str | None
    """Why a refused deployment has no proposal."""
    factsDigest: str | None
    """The facts of the last review."""


class Deployment(Value):
    """A stored deployment."""

    apiVersion: ApiVersion
    kind: Literal["PinnedInferenceDeployment"]
    metadata: ObjectMeta
    spec: Spec
    pin: PinRecord
    status: DeploymentStatus


class DeploymentSummary(Value):
    """A stored deployment in the basic view."""

    apiVersion: ApiVersion
    kind: Literal["PinnedInferenceDeployment"]
    metadata: ObjectMeta
    status: DeploymentState


class DifferenceShape(Value):
    """One place that a change would alter."""

    pointer: str
    before: Any
    after: Any


class Plan(Value):
    """What a dry run found; nothing was stored."""

    apiVersion: ApiVersion
    kind: Literal["Plan"]
    action: Literal["create", "replace", "unchanged", "delete"]
    name: str
    refused: bool
    changes: tuple[DifferenceShape, ...]
    violations: tuple[Violation, ...] = ()
    identity: dict[str, str | None] | None = None
    """``before`` and ``after``; another identity means that engines are replaced."""
    facts: dict[str, str | None] | None = None
    """``digest`` and ``as_of`` of the facts that it was judged by."""


class BodyMeta(Value):
    """What a client says about an object beside its spec."""

    name: Name


class WaiverSpec(Value):
    """An exception for one identity, of one advisory or one rule."""

    identity: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    advisory: Line | None = None
    rule: Line | None = None
    owner: Line
    reason: Text
    expires: date


class TriageSpec(Value):
    """A person's word on an advisory whose data does not decide."""

    package: Line
    advisory: Line
    versions: tuple[Line, ...] = ()
    """Empty = every version."""
    status: TriageStatus
    owner: Line
    reason: Text
    reference: Text
    expires: date


class KeySpec(Value):
    """Whose key it is, when it ends, and what it may do."""

    tenant: Name
    expires: datetime | None = None
    models: tuple[Line, ...] = ()
    """Public models that it may ask for; empty = all of the tenant's."""
    pins_arms: bool = False
    """Whether its requests may say which arm of a route serves them, for tests of a canary."""


class WaiverBody(Value):
    """A waiver as a client sends it."""

    apiVersion: ApiVersion = "enginehouse.dev/v1"
    kind: Literal["Waiver"] = "Waiver"
    metadata: BodyMeta
    spec: WaiverSpec


class TriageBody(Value):
    """A triage entry as a client sends it."""

    apiVersion: ApiVersion = "enginehouse.dev/v1"
    kind: Literal["Triage"] = "Triage"
    metadata: BodyMeta
    spec: TriageSpec


class TenantBody(Value):
    """A tenant as a client sends it."""

    apiVersion: ApiVersion = "enginehouse.dev/v1"
    kind: Literal["Tenant"] = "Tenant"
    metadata: BodyMeta
    spec: TenantSpec = TenantSpec()


class KeyBody(Value):
    """What a client asks for: a key of a tenant."""

    tenant: Name
    name: Name | None = None
    """``null`` = the server gives one."""
    expires: datetime | None = None
    """``null`` = it does not end by itself."""
    models: Annotated[tuple[Line, ...], Field(max_length=100)] = ()
    """Public models that it may ask for; empty = all of the tenant's."""
    pins_arms: bool = False
    """Whether its requests may say which arm of a route serves them, for tests of a canary."""


class RotationBody(Value):
    """How a key is rotated."""

    overlap_seconds: Annotated[int, Field(ge=0, le=LONGEST_OVERLAP_SECONDS)] = 86_400
    """How long the key that was there until now goes on beside the new one."""


class Waiver(WaiverBody):
    """A stored waiver."""

    metadata: ObjectMeta  # type: ignore[assignment]


class Triage(TriageBody):
    """A stored triage entry."""

    metadata: ObjectMeta  # type: ignore[assignment]


class Tenant(TenantBody):
    """A stored tenant."""

    metadata: ObjectMeta  # type: ignore[assignment]


class EndingKeyShape(Value):
    """An earlier generation of a key that may still be in use."""

    generation: int
    prefix: str
    ends: datetime


class KeyStatus(Value):
    """What is known of a key."""

    prefix: str
    ending: tuple[EndingKeyShape, ...]
    """Earlier generations that go on until their end."""


class Key(Value):
    """A key of a tenant."""

    apiVersion: ApiVersion
    kind: Literal["Key"]
    metadata: ObjectMeta
    spec: KeySpec
    status: KeyStatus


class NewKey(Key):
    """A key as it is shown once."""

    key: str
    """The key itself; only its hash is kept."""
