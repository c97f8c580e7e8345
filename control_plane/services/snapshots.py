"""What the gateways work from: tenants, keys, routes and endpoints of one moment."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from control_plane.ports import Revision, Store, UnitOfWork
from control_plane.records import StoredDeployment, StoredKey, StoredObject
from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayKey, GatewayRoute, GatewaySnapshot, GatewayTenant

_PAGE = 500


class SnapshotService:
    """Builds the gateway's snapshot, once for each change."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._built: tuple[int, GatewaySnapshot, str] | None = None

    @property
    def revision(self) -> Revision:
        """Rises when the snapshot may be another one: cheap to ask often."""
        return self._store.revision

    def current(self) -> tuple[GatewaySnapshot, str]:
        """The snapshot and its ETag."""
        with self._lock:
            revision = self._store.revision.routes
            if self._built is None or self._built[0] != revision:
                snapshot = self._build()
                self._built = (revision, snapshot, snapshot.etag)
            return self._built[1], self._built[2]

    def _build(self) -> GatewaySnapshot:
        with self._store.read() as unit:
            tenants = _all(lambda after: unit.tenants.page(after=after, limit=_PAGE))
            keys = _all(lambda after: unit.keys.page(after=after, limit=_PAGE))
            deployments = list(all_deployments(unit))
        return GatewaySnapshot(
            tenants=tuple(GatewayTenant.model_validate({"name": item.name, **item.spec}) for item in tenants),
            keys=tuple(
                GatewayKey(
                    id=key.name, sha256=key.sha256, tenant=key.tenant, expires_unix_seconds=key.expires_unix_seconds
                )
                for key in keys
            ),
            routes=routes_of(deployments),
        )


def all_deployments(unit: UnitOfWork) -> Iterable[StoredDeployment]:
    """Every deployment, by name."""
    return _all(lambda after: unit.deployments.page(after=after, limit=_PAGE))


def routes_of(deployments: Iterable[StoredDeployment]) -> tuple[GatewayRoute, ...]:
    """One route for each public model name.

    Where several deployments serve one name, only tenants that all of them admit may ask, and any filter holds for
    all: the default is no.
    """
    by_model: dict[str, list[StoredDeployment]] = defaultdict(list)
    for deployment in deployments:
        by_model[deployment.route.model].append(deployment)
    routes = []
    for model, members in sorted(by_model.items()):
        admitted = set.intersection(*(set(member.route.tenants) for member in members))
        filters = sorted({member.route.output_filter for member in members} - {"none"})
        arms = tuple(arm for member in members for arm in _arms(member))
        tenants = tuple(sorted(admitted))
        output_filter = filters[0] if filters else "none"
        routes.append(GatewayRoute(model=model, tenants=tenants, output_filter=output_filter, arms=arms))
    return tuple(routes)


def _arms(deployment: StoredDeployment) -> Sequence[GatewayArm]:
    """One arm for each identity that has endpoints; one whose endpoints all drain has no weight."""
    by_identity: dict[str, list[GatewayEndpoint]] = {}
    for item in deployment.endpoints:
        endpoint = GatewayEndpoint(address=item.address, is_draining=item.is_draining)
        by_identity.setdefault(item.identity, []).append(endpoint)
    if not by_identity:
        by_identity[deployment.identity] = []
    return [
        GatewayArm(
            deployment=deployment.name,
            identity=identity,
            engine=deployment.engine,
            weight=0.0 if endpoints and all(item.is_draining for item in endpoints) else 1.0,
            endpoints=tuple(endpoints),
        )
        for identity, endpoints in sorted(by_identity.items())
    ]


Named = TypeVar("Named", StoredDeployment, StoredKey, StoredObject)


def _all(page: Callable[[str], Sequence[Named]]) -> list[Named]:
    found: list[Named] = []
    while items := page(found[-1].name if found else ""):
        found += items
    return found
