"""What the gateways work from: tenants, keys, routes, prices and endpoints of one moment."""

import threading
from collections.abc import Iterable, Iterator

from control_plane.ports import Revision, Store, UnitOfWork
from control_plane.records import FetchedKeys, StoredDeployment, StoredKey, StoredObject
from control_plane.services.issuer_keys import kept_for
from control_plane.services.known_models import all_objects, every, model_of
from control_plane.services.route_table import routes_of
from fleet.budget import ModelPrice
from fleet.output_policy import NamedFilter
from fleet.snapshot import SNAPSHOT_VERSION, GatewayKey, GatewaySnapshot, GatewayTenant
from fleet.token_issuer import TokenIssuer

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
            fetched = unit.fetched_keys.all()
            settings = {model_of(item): item.spec for item in all_objects(unit.routes)}
            keys = every(lambda after: unit.keys.page(after=after, limit=_PAGE))
            return GatewaySnapshot(
                version=SNAPSHOT_VERSION,
                tenants=tuple(
                    GatewayTenant.model_validate({"name": item.name, **item.spec}) for item in all_objects(unit.tenants)
                ),
                keys=tuple(generation for key in keys for generation in generations_of(key)),
                routes=routes_of(all_deployments(unit), settings),
                prices=tuple(
                    ModelPrice.model_validate({**item.spec, "model": model_of(item)})
                    for item in all_objects(unit.prices)
                ),
                output_filters=tuple(
                    NamedFilter.model_validate({"name": item.name, "policy": item.spec})
                    for item in all_objects(unit.output_filters)
                ),
                issuers=tuple(issuer_of(item, kept_for(item, fetched)) for item in all_objects(unit.token_issuers)),
            )


def all_deployments(unit: UnitOfWork) -> Iterable[StoredDeployment]:
    """Every deployment, by name."""
    return every(lambda after: unit.deployments.page(after=after, limit=_PAGE))


def generations_of(key: StoredKey) -> Iterator[GatewayKey]:
    """A key, and what it was before as long as that goes on."""
    current = GatewayKey(
        id=key.name,
        sha256=key.sha256,
        tenant=key.tenant,
        expires_unix_seconds=key.expires_unix_seconds,
        models=key.models,
        generation=key.generation,
        pins_arms=key.pins_arms,
    )
    yield current
    for item in key.ending:
        earlier = {"sha256": item.sha256, "generation": item.generation, "expires_unix_seconds": item.ends_unix_seconds}
        yield current.model_copy(update=earlier)


def issuer_of(stored: StoredObject, fetched: FetchedKeys | None) -> TokenIssuer:
    """An issuer with the keys of its spec and those that were read from its address."""
    stated = {name: value for name, value in stored.spec.items() if name != "jwks_url"}
    stated["keys"] = [*stated.get("keys", ()), *(fetched.keys if fetched else ())]
    return TokenIssuer.model_validate(stated)
