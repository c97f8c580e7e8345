"""The lists of the API, for its description."""

from typing import Literal

from control_plane.api import data_shapes, shapes
from fleet.audit import AuditEvent, ChainHead
from fleet.facts import Facts
from fleet.value import Value


class _List(Value):
    apiVersion: shapes.ApiVersion
    next_page_token: str | None
    """``null`` on the last page."""


class DeploymentList(_List):
    """A page of deployments."""

    kind: Literal["DeploymentList"]
    items: tuple[shapes.Deployment | shapes.DeploymentSummary, ...]


class WaiverList(_List):
    """A page of waivers."""

    kind: Literal["WaiverList"]
    items: tuple[shapes.Waiver, ...]


class TriageList(_List):
    """A page of triage entries."""

    kind: Literal["TriageList"]
    items: tuple[shapes.Triage, ...]


class TenantList(_List):
    """A page of tenants."""

    kind: Literal["TenantList"]
    items: tuple[shapes.Tenant, ...]


class KeyList(_List):
    """A page of keys."""

    kind: Literal["KeyList"]
    items: tuple[shapes.Key, ...]


class AdvisoryList(_List):
    """A page of advisories."""

    kind: Literal["AdvisoryList"]
    items: tuple[data_shapes.Advisory, ...]


class EnginePinsList(_List):
    """A page of pins."""

    kind: Literal["EnginePinsList"]
    items: tuple[data_shapes.EnginePins, ...]


class EngineList(_List):
    """A page of engines."""

    kind: Literal["EngineList"]
    items: tuple[data_shapes.Engine, ...]


class AuditEventList(_List):
    """A page of the audit log; ``head`` says where the whole chain ends."""

    kind: Literal["AuditEventList"]
    items: tuple[AuditEvent, ...]
    head: ChainHead


class FactsBundle(Value):
    """Everything that reviews look at, with its digest."""

    apiVersion: shapes.ApiVersion
    kind: Literal["Facts"]
    digest: str
    as_of: str | None
    catalogue_digest: str
    facts: Facts
