"""Which node groups a pool becomes: one over all its zones, or one for each where its nodes have to stand together."""

from collections.abc import Sequence
from dataclasses import dataclass

from fleet.cloud.node_groups import Scaling
from infra.stack_config import PoolConfig


@dataclass(frozen=True, slots=True)
class ZoneGroup:
    """One node group of a pool."""

    suffix: str
    """What its name has behind the pool's; empty = the pool is one group."""
    zones: tuple[str, ...]
    scaling: Scaling


def zones_of(pool: PoolConfig, network_zones: Sequence[str]) -> tuple[str, ...]:
    """Where the pool's nodes may stand.

    Raises:
        ValueError: a zone in which the network has no subnet.
    """
    zones = pool.zones or ((pool.zone,) if pool.zone else tuple(network_zones))
    missing = [zone for zone in zones if zone not in network_zones]
    if missing:
        known = ", ".join(network_zones)
        raise ValueError(f"pool {pool.name}: no subnet in {', '.join(missing)}; the network has {known}")
    return zones


def zone_groups(pool: PoolConfig, network_zones: Sequence[str]) -> tuple[ZoneGroup, ...]:
    """The node groups of a pool. With EFA each zone has its own, and the pool's numbers are shared out among them.

    Raises:
        ValueError: a zone without a subnet, a pool without a limit, several zones with a reservation.
    """
    zones = zones_of(pool, network_zones)
    if pool.max_nodes is None or pool.max_nodes < 1:
        raise ValueError(f"pool {pool.name}: max_nodes is {pool.max_nodes}; a node group needs a limit of 1 or more")
    if pool.reservation_id and len(zones) > 1:
        raise ValueError(f"pool {pool.name}: {pool.reservation_id} has one zone and the pool {', '.join(zones)}")
    if not pool.efa:
        return (ZoneGroup("", zones, Scaling(pool.min_nodes, max(pool.min_nodes, pool.desired_nodes), pool.max_nodes)),)
    used = zones[: pool.max_nodes]
    least, most = _shared_out(pool.min_nodes, len(used)), _shared_out(pool.max_nodes, len(used))
    wanted = _shared_out(max(pool.min_nodes, pool.desired_nodes), len(used))
    numbers = zip(used, least, wanted, most, strict=True)
    return tuple(ZoneGroup(f"-{zone}", (zone,), Scaling(low, mid, high)) for zone, low, mid, high in numbers)


def _shared_out(number: int, groups: int) -> list[int]:
    each, rest = divmod(number, groups)
    return [each + (index < rest) for index in range(groups)]
