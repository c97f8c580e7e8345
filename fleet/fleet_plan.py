"""Planning a fleet: all deployments of an environment onto its node pools at once.

Each deployment comes with the placements that were found possible for it, as plain values; it goes onto one pool or
is left out with the reason of every pool. As many deployments as possible are placed, then on prices that are known,
then as cheaply as possible, then on as few nodes as possible.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date

from fleet.fleet_search import Choice, Searched, search
from fleet.hardware import SharingMode, nodes_per_replica
from fleet.node_pools import NodePool
from fleet.plan_answer import parallel_document
from fleet.plan_wish import Reason
from fleet.pool_filling import Filling, Load, NodeShare, fill
from fleet.pool_match import Deployment, PlacementOption, load_of, mismatch, too_many
from fleet.prices import Price, PriceTable


@dataclass(frozen=True, slots=True)
class Placed:
    """A deployment on a pool."""

    deployment: str
    pool: NodePool
    option: PlacementOption

    @property
    def memory_share(self) -> float | None:
        """Of one GPU's memory that a replica takes: as its engine is told, else by what it needs; 1 = a GPU alone."""
        if self.option.sharing is SharingMode.EXCLUSIVE:
            return 1.0
        if self.option.memory_share is not None:
            return self.option.memory_share
        whole, needed = self.pool.gpu.memory_bytes, self.option.memory_bytes
        if self.pool.mig_profile is not None and whole:
            return round((self.pool.gpu.slice_bytes(self.pool.mig_profile) or 0) / whole, 2)
        return None if not whole or needed is None else min(1.0, math.ceil(100 * needed / whole) / 100)


@dataclass(frozen=True, slots=True)
class PoolReason:
    """Why a deployment is not on a pool; without a pool, why it is on none."""

    pool: str | None
    reason: Reason


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A deployment that is on no pool."""

    deployment: str
    reasons: tuple[PoolReason, ...]


@dataclass(frozen=True, slots=True)
class PoolUse:
    """What a plan makes of one pool."""

    pool: NodePool
    filling: Filling
    price: Price | None
    """Of one node; ``None`` = not known."""

    @property
    def nodes(self) -> int:
        """Nodes that are needed."""
        return len(self.filling.nodes)

    @property
    def nodes_left(self) -> int | None:
        """Nodes that the pool could still have; ``None`` = no limit."""
        return None if self.pool.max_nodes is None else self.pool.max_nodes - self.nodes

    @property
    def usd_per_hour(self) -> float | None:
        """Of the needed nodes; ``None`` = not known."""
        if not self.nodes:
            return 0.0
        return None if self.price is None else round(self.price.usd_per_hour * self.nodes, 6)


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Which deployment stands on which pool."""

    as_of: date
    until: date
    """The day up to which the plan holds."""
    pools: tuple[PoolUse, ...]
    placed: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]
    is_exhaustive: bool
    """Whether all choices were looked at, not only the promising ones."""

    @property
    def usd_per_hour(self) -> float | None:
        """Of all needed nodes; ``None`` when the price of one isn't known."""
        known = [use.usd_per_hour for use in self.pools]
        return None if None in known else round(sum(cost for cost in known if cost is not None), 6)

    def to_document(self) -> dict[str, object]:
        """Plain JSON, stable: pools and deployments by name; an unknown figure is null, and a cost has its period."""
        return {
            "as_of": self.as_of.isoformat(),
            "until": self.until.isoformat(),
            "is_exhaustive": self.is_exhaustive,
            "pools": [_pool_document(use, self.placed) for use in self.pools],
            "placed": [_placed_document(item) for item in self.placed],
            "unplaced": [
                {"deployment": item.deployment, "reasons": [_reason_document(reason) for reason in item.reasons]}
                for item in self.unplaced
            ],
            "totals": self._totals(),
        }

    def _totals(self) -> dict[str, object]:
        nodes = [node for use in self.pools for node in use.filling.nodes]
        needed = [use for use in self.pools if use.nodes]
        return {
            "nodes": len(nodes),
            "gpus": sum(node.gpus for node in nodes),
            "gpus_used": sum(node.gpus_used for node in nodes),
            "gpus_saved_by_sharing": sum(use.filling.packing.saved_gpus for use in self.pools if use.filling.packing),
            "usd_per_hour": self.usd_per_hour,
            "priced_on": sorted({use.price.as_of for use in needed if use.price is not None}),
            "pools_without_price": [use.pool.name for use in needed if use.price is None],
        }


@dataclass(frozen=True, slots=True)
class _Question:
    """Everything that is asked, in stable order."""

    pools: tuple[NodePool, ...]
    deployments: tuple[Deployment, ...]
    prices: PriceTable
    until: date
    refusals: dict[tuple[int, int], Reason] = field(default_factory=dict)
    """By deployment and pool: why none of its options can stand there at all."""


def plan_fleet(
    deployments: Iterable[Deployment],
    pools: Iterable[NodePool],
    *,
    prices: PriceTable,
    today: date,
    until: date | None = None,
) -> FleetPlan:
    """Place all deployments onto the pools; neither's order matters, but that of a deployment's options breaks ties.

    Raises:
        ValueError: two deployments or two pools of one name.
    """
    asked = _Question(
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        deployments=tuple(sorted(deployments, key=lambda item: item.name)),
        prices=prices,
        until=max(today, until or today),
    )
    _check_names("pools", [pool.name for pool in asked.pools])
    _check_names("deployments", [item.name for item in asked.deployments])
    choices = [_choices(asked, index) for index in range(len(asked.deployments))]
    node_prices = [prices.usd_per_hour(pool.instance_type, purchase=pool.purchase) for pool in asked.pools]
    return _answer(asked, choices, search(choices, asked.pools, node_prices), today)


def _check_names(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two {what} are called '{name}'; names are ids")


def _choices(asked: _Question, index: int) -> tuple[Choice, ...]:
    """Every (option, pool) on which the deployment can stand while the pool is empty."""
    deployment, found = asked.deployments[index], []
    for place, pool in enumerate(asked.pools):
        reasons = []
        for rank, option in enumerate(deployment.options):
            load = load_of(deployment, option)
            reason = mismatch(deployment, option, pool, max(asked.until, deployment.until or asked.until))
            reason = reason or too_many(pool, (), load)
            if reason is None:
                found.append(Choice(place, rank, load))
            else:
                reasons.append(reason)
        if reasons and len(reasons) == len(deployment.options):
            asked.refusals[index, place] = next((item for item in reasons if item.rule != "instance-type"), reasons[0])
    return tuple(found)


def _answer(asked: _Question, choices: list[tuple[Choice, ...]], searched: Searched, today: date) -> FleetPlan:
    loads: Mapping[int, tuple[Load, ...]] = {
        place: tuple(choice.load for choice in searched.chosen if choice is not None and choice.pool == place)
        for place in range(len(asked.pools))
    }
    placed, unplaced = [], []
    for index, choice in enumerate(searched.chosen):
        deployment = asked.deployments[index]
        if choice is None:
            unplaced.append(Unplaced(deployment.name, _why_not(asked, index, choices[index], loads)))
        else:
            placed.append(Placed(deployment.name, asked.pools[choice.pool], deployment.options[choice.option]))
    uses = (
        PoolUse(pool, fill(pool, loads[place]), asked.prices.price(pool.instance_type, pool.purchase))
        for place, pool in enumerate(asked.pools)
    )
    return FleetPlan(today, asked.until, tuple(uses), tuple(placed), tuple(unplaced), searched.is_exhaustive)


def _why_not(
    asked: _Question, index: int, choices: tuple[Choice, ...], loads: Mapping[int, tuple[Load, ...]]
) -> tuple[PoolReason, ...]:
    deployment = asked.deployments[index]
    if not deployment.options:
        reasons = deployment.reasons or (Reason("no-placement", f"no placement was found for {deployment.name}"),)
        return tuple(PoolReason(None, reason) for reason in reasons)
    found = {place: reason for (at, place), reason in asked.refusals.items() if at == index}
    for choice in choices:
        reason = too_many(asked.pools[choice.pool], loads[choice.pool], choice.load)
        if reason is not None:
            found.setdefault(choice.pool, reason)
    if all(reason.rule == "instance-type" for reason in found.values()):
        wanted = ", ".join(dict.fromkeys(option.instance_type for option in deployment.options))
        have = ", ".join(sorted({pool.instance_type for pool in asked.pools})) or "none"
        text = f"{deployment.name} can run on {wanted}; the pools have {have}"
        return (PoolReason(None, Reason("no-pool", text, {"wanted": wanted, "pools": have})),)
    return tuple(PoolReason(asked.pools[place].name, reason) for place, reason in sorted(found.items()))


def _pool_document(use: PoolUse, placed: tuple[Placed, ...]) -> dict[str, object]:
    pool, nodes = use.pool, use.filling.nodes
    return {
        "pool": pool.name,
        "instance_type": pool.instance_type,
        "gpu": pool.gpu.name,
        "purchase": pool.purchase,
        "sharing": pool.sharing.value,
        "mig_profile": pool.mig_profile,
        "zone": pool.zone,
        "ends_on": None if pool.ends_on is None else pool.ends_on.isoformat(),
        "nodes": use.nodes,
        "max_nodes": pool.max_nodes,
        "nodes_left": use.nodes_left,
        "gpus": sum(node.gpus for node in nodes),
        "gpus_used": sum(node.gpus_used for node in nodes),
        "gpus_free": sum(node.gpus_free for node in nodes),
        "deployments": [item.deployment for item in placed if item.pool.name == pool.name],
        "cost": {
            "usd_per_hour": use.usd_per_hour,
            "priced_on": use.price.as_of if use.price else None,
            "is_estimate": use.price.is_estimate if use.price else None,
            "source": use.price.source if use.price else None,
        },
        "content": [
            {"gpus_free": node.gpus_free, "replicas": [_share_document(share) for share in node.shares]}
            for node in nodes
        ],
        "packing": use.filling.packing.to_document() if use.filling.packing else None,
    }


def _share_document(share: NodeShare) -> dict[str, object]:
    return {"deployment": share.deployment, "replica": share.replica, "gpus": list(share.gpu_indices)}


def _placed_document(item: Placed) -> dict[str, object]:
    served = item.option.served
    return {
        "deployment": item.deployment,
        "pool": item.pool.name,
        "instance_type": item.option.instance_type,
        "sharing": item.option.sharing.value,
        "memory_share": item.memory_share,
        "replicas": item.option.replicas,
        "gpus_per_replica": item.option.gpus,
        "engine": served and served.engine,
        "version": served and served.version,
        "model_id": served and served.model_id,
        "parallel": served and parallel_document(served.plan),
        "nodes_per_replica": nodes_per_replica(item.option.gpus, item.pool.instance),
    }


def _reason_document(item: PoolReason) -> dict[str, object]:
    reason = item.reason
    return {
        "pool": item.pool,
        "rule": reason.rule,
        "message": reason.message,
        "evidence": dict(reason.evidence),
    }
