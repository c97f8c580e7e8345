"""What a node pool costs an hour, by a dated table of prices; an unknown price stays unknown, with a reason."""

from dataclasses import dataclass

from fleet.node_pools import NodePool
from fleet.prices import PriceTable


@dataclass(frozen=True, slots=True)
class PoolCost:
    """The hourly cost of a pool. Every figure is ``None`` where the price is not known; ``reason`` then says why."""

    pool: str
    instance_type: str
    purchase: str
    usd_per_node_hour: float | None
    usd_per_hour: float | None
    """With the nodes asked for."""
    most_usd_per_hour: float | None
    """With all nodes that the pool may have; ``None`` also where it has no limit."""
    as_of: str | None = None
    """The day, month or quarter of the price."""
    source: str | None = None
    is_estimate: bool = False
    reason: str = ""
    """Why a figure is missing, or what to know about those that stand; empty where there is nothing to say."""


def pool_cost(pool: NodePool, *, nodes: int, region: str, prices: PriceTable) -> PoolCost:
    """What a pool with some nodes costs an hour in a region."""
    price = prices.price(pool.instance_type, pool.purchase)
    if price is None:
        reason = prices.why_unknown(pool.instance_type, pool.purchase)
        return PoolCost(pool.name, pool.instance_type, pool.purchase, None, None, None, reason=reason)
    each = price.usd_per_hour
    notes = []
    if pool.max_nodes is None:
        notes.append("the pool has no limit of nodes")
    if price.region is None:
        notes.append("the price is of no stated region")
    elif price.region != region:
        notes.append(f"the price is of {price.region}, the pool stands in {region}")
    return PoolCost(
        pool.name,
        pool.instance_type,
        pool.purchase,
        each,
        each * nodes,
        None if pool.max_nodes is None else each * pool.max_nodes,
        as_of=price.as_of,
        source=price.source,
        is_estimate=price.is_estimate,
        reason="; ".join(notes),
    )
