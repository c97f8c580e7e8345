"""A snapshot made ready for look-ups that cost no I/O and no search."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fleet.budget import ModelPrice
from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayKey, GatewayRoute, GatewaySnapshot, GatewayTenant
from gateway.arms import arms_of, pool_of
from gateway.filter_table import NO_FILTERS, Filters
from gateway.jwt_tenants import JwtTenants, jwt_tenants_of

_HEADER_TEXT = re.compile(r"[!-~]{1,256}")


@dataclass(frozen=True, slots=True)
class SnapshotIndex:
    """The tables of one snapshot."""

    keys: Mapping[str, GatewayKey] = field(repr=False)
    """By hex sha256 of the key."""
    tenants: Mapping[str, GatewayTenant]
    routes: Mapping[tuple[str, str], GatewayRoute]
    """By tenant and model or alias: what a tenant may not ask for is not there."""
    models: Mapping[str, tuple[str, ...]]
    """The models and aliases of each tenant, sorted."""
    addresses: frozenset[str]
    unusable_addresses: tuple[str, ...]
    """Endpoints that are left out because they are not ``ip:port``: Envoy would reject all endpoints with them."""
    prices: tuple[ModelPrice, ...] = ()
    filters: Filters = field(default_factory=lambda: NO_FILTERS, repr=False)
    """The output filters that its routes name and that can be used."""
    hosted: frozenset[str] = frozenset()
    """The hosted engines, by what they are called in the place of an address."""
    tokens: JwtTenants = field(default_factory=lambda: JwtTenants(()), repr=False, compare=False)
    """Who may vouch for tenants beside keys."""
    unusable_arms: tuple[str, ...] = ()
    """Arms that are left out because their identity can't stand in a header, by deployment."""

    @property
    def all_models(self) -> frozenset[str]:
        """Every model that some tenant may ask for."""
        return frozenset(route.model for route in self.routes.values())


def index_of(
    snapshot: GatewaySnapshot, filters: Filters = NO_FILTERS, before: SnapshotIndex | None = None
) -> SnapshotIndex:
    """The tables of a snapshot; of two routes with one tenant and model the first counts.

    Tokens that were accepted ``before`` stay known while their issuers stay the same.
    """
    stated = {endpoint.address for r in snapshot.routes for arm in arms_of(r) for endpoint in arm.endpoints}
    usable = frozenset(address for address in stated if is_socket_address(address))
    hosted: set[str] = set()
    routes: dict[tuple[str, str], GatewayRoute] = {}
    models: dict[str, set[str]] = {}
    named: list[tuple[tuple[str, str], GatewayRoute]] = []
    for stated_route in snapshot.routes:
        is_clean = len(usable) == len(stated) and all(map(is_sendable, arms_of(stated_route)))
        route = _with_hosts(stated_route if is_clean else _without_unusable(stated_route, usable))
        hosted.update(pool_of(arm) for arm in arms_of(route) if arm.hosted is not None)
        for tenant in route.tenants:
            routes.setdefault((tenant, route.model), route)
            models.setdefault(tenant, set()).add(route.model)
            named += [((tenant, alias), route) for alias in route.aliases]
    for (tenant, alias), route in named:
        routes.setdefault((tenant, alias), route)
        models[tenant].add(alias)
    return SnapshotIndex(
        keys={key.sha256.lower(): key for key in snapshot.keys},
        tenants={tenant.name: tenant for tenant in snapshot.tenants},
        routes=routes,
        models={tenant: tuple(sorted(names)) for tenant, names in models.items()},
        addresses=usable,
        hosted=frozenset(hosted),
        unusable_addresses=tuple(sorted(stated - usable)),
        prices=snapshot.prices,
        filters=filters,
        tokens=jwt_tenants_of(snapshot.issuers, before.tokens if before else None),
        unusable_arms=tuple(arm.deployment for r in snapshot.routes for arm in arms_of(r) if not is_sendable(arm)),
    )


def is_socket_address(address: str) -> bool:
    """Whether it is ``ip:port`` (``[ip]:port`` for IPv6), spelt as Envoy spells it: another spelling is never found."""
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536):
        return False
    try:
        ip = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    spelt = f"[{ip}]" if ip.version == 6 else str(ip)
    return "%" not in host and address == f"{spelt}:{int(port)}"


def is_sendable(arm: GatewayArm) -> bool:
    """Whether its identity can be told to Envoy in a header; names are checked where they are read."""
    return _HEADER_TEXT.fullmatch(arm.identity) is not None


def _with_hosts(route: GatewayRoute) -> GatewayRoute:
    """A hosted arm has one endpoint, which is called as the arm is: it is resolved where it is connected to."""
    if all(arm.hosted is None for arm in arms_of(route)):
        return route
    return _changed(route, _with_host)


def _with_host(arm: GatewayArm) -> GatewayArm:
    return arm.model_copy(update={"endpoints": (GatewayEndpoint(address=pool_of(arm)),)}) if arm.hosted else arm


def _without_unusable(route: GatewayRoute, usable: frozenset[str]) -> GatewayRoute:
    shadow = route.shadow if route.shadow is not None and is_sendable(route.shadow.arm) else None
    arms = tuple(arm for arm in route.arms if is_sendable(arm))
    sendable = route.model_copy(update={"arms": arms, "shadow": shadow})
    return _changed(sendable, lambda arm: _with_usable(arm, usable))


def _changed(route: GatewayRoute, change: Callable[[GatewayArm], GatewayArm]) -> GatewayRoute:
    """The route with each of its arms changed, the shadow's too."""
    shadow = route.shadow and route.shadow.model_copy(update={"arm": change(route.shadow.arm)})
    return route.model_copy(update={"arms": tuple(map(change, route.arms)), "shadow": shadow})


def _with_usable(arm: GatewayArm, usable: frozenset[str]) -> GatewayArm:
    kept = tuple(endpoint for endpoint in arm.endpoints if endpoint.address in usable)
    return arm.model_copy(update={"endpoints": kept})
