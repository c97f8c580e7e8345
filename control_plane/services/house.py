"""Everything that the HTTP face may call, in one value."""

from collections.abc import Callable
from dataclasses import dataclass

from control_plane.ports import Meter
from control_plane.services.advisories import AdvisoryService, EngineService
from control_plane.services.audit import AuditLog
from control_plane.services.closings import ClosingService
from control_plane.services.deployments import DeploymentService
from control_plane.services.facts import FactsBook
from control_plane.services.inspection import Inspector
from control_plane.services.issuer_keys import IssuerKeys
from control_plane.services.keys import KeyService
from control_plane.services.objects import ObjectService
from control_plane.services.placements import PlacementService
from control_plane.services.proposals import Proposals
from control_plane.services.readiness import Readiness
from control_plane.services.reconciliation import Reconciler
from control_plane.services.snapshots import SnapshotService
from control_plane.services.tokens import TokenService
from control_plane.services.usage import UsageService


@dataclass(frozen=True, slots=True)
class House:
    """The services of one control plane."""

    facts: FactsBook
    deployments: DeploymentService
    waivers: ObjectService
    triage: ObjectService
    tenants: ObjectService
    prices: ObjectService
    token_issuers: ObjectService
    routes: ObjectService
    closings: ClosingService
    output_filters: ObjectService
    keys: KeyService
    issuer_keys: IssuerKeys
    tokens: TokenService
    audit: AuditLog
    advisories: AdvisoryService
    engines: EngineService
    placements: PlacementService
    snapshots: SnapshotService
    usage: UsageService
    readiness: Readiness
    inspector: Inspector
    proposals: Proposals
    reconciler: Reconciler
    meter: Meter
    is_stopping: Callable[[], bool]
    """Whether the server is about to end: requests that wait stop waiting."""
