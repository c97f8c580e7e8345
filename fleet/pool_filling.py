"""How many nodes of one pool some deployments need, and what stands on which node.

A replica stays inside a node, or spans whole nodes. On shared GPUs the replicas are packed onto GPUs first.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fleet.node_pools import NodePool
from fleet.packing import Packing, PackingItem, pack
from fleet.sharing import SharingWay, context_bytes

PACKING_STEPS = 500
"""A fleet is filled many times while the best choice is sought."""


@dataclass(frozen=True, slots=True, order=True)
class Load:
    """A deployment on a pool."""

    deployment: str
    gpus: int
    """GPUs of one replica."""
    replicas: int
    memory_bytes: int = 0
    """What a replica takes of a shared GPU, without its context and graphs."""
    needs_hardware_isolation: bool = False


@dataclass(frozen=True, slots=True, order=True)
class NodeShare:
    """What one replica has on one node."""

    deployment: str
    replica: int
    gpu_indices: tuple[int, ...]
    """GPUs of the node; several replicas name the same one where it is shared."""


@dataclass(frozen=True, slots=True)
class NodeUse:
    """One node and what stands on it."""

    gpus: int
    shares: tuple[NodeShare, ...]

    @property
    def gpus_used(self) -> int:
        """GPUs with at least one replica."""
        return len({index for share in self.shares for index in share.gpu_indices})

    @property
    def gpus_free(self) -> int:
        """GPUs that nobody has."""
        return self.gpus - self.gpus_used


@dataclass(frozen=True, slots=True)
class Filling:
    """The nodes that some deployments need."""

    nodes: tuple[NodeUse, ...]
    packing: Packing | None = None
    """What stands on each GPU, on pools whose GPUs are shared."""


def fill(pool: NodePool, loads: Iterable[Load]) -> Filling:
    """The nodes that these need, as if the pool had no limit; the order of the loads doesn't matter.

    A replica of more GPUs than a node has must take whole nodes, and on a shared pool a replica takes one GPU's share:
    `fleet.fleet_plan` refuses the rest before.
    """
    ordered = sorted(loads)
    if pool.sharing is SharingWay.EXCLUSIVE:
        return Filling(_first_fit(pool.instance.gpus, ordered))
    packing = pack(map(packing_item, ordered), pool.share(context_bytes=context_bytes()), steps=PACKING_STEPS)
    return Filling(_nodes_of(packing, pool.instance.gpus), packing)


def nodes_of_load(pool: NodePool, load: Load) -> float:
    """The part of the pool's nodes that a load takes by its GPUs, or by its memory where they are shared."""
    share = float(load.gpus)
    if pool.sharing is not SharingWay.EXCLUSIVE:
        capacity_bytes = pool.share(context_bytes=0).capacity_bytes
        share = (load.memory_bytes + context_bytes()) / capacity_bytes if capacity_bytes else 1.0
    return share * load.replicas / pool.instance.gpus


def packing_item(load: Load) -> PackingItem:
    """The load as something to be packed onto GPUs."""
    return PackingItem(load.deployment, load.memory_bytes, load.replicas, load.needs_hardware_isolation)


def replicas_that_fit(pool: NodePool, others: Iterable[Load], load: Load) -> int:
    """How many replicas of a load find room beside the others within the pool's nodes."""
    beside, fitting = list(others), 0
    for replicas in range(1, load.replicas + 1):
        some = Load(load.deployment, load.gpus, replicas, load.memory_bytes, load.needs_hardware_isolation)
        if pool.max_nodes is not None and len(fill(pool, [*beside, some]).nodes) > pool.max_nodes:
            break
        fitting = replicas
    return fitting


def _first_fit(size: int, loads: list[Load]) -> tuple[NodeUse, ...]:
    """Largest replicas first, each into the first node with room; those that span nodes take whole ones."""
    nodes: list[list[NodeShare]] = []
    used: list[int] = []
    for load in sorted(loads, key=lambda item: (-item.gpus, item.deployment)):
        for replica in range(load.replicas):
            for part in _parts(load.gpus, size):
                at = next((index for index, taken in enumerate(used) if taken + part <= size), len(nodes))
                if at == len(nodes):
                    nodes.append([])
                    used.append(0)
                nodes[at].append(NodeShare(load.deployment, replica, tuple(range(used[at], used[at] + part))))
                used[at] += part
    return tuple(NodeUse(size, tuple(shares)) for shares in nodes)


def _parts(gpus: int, size: int) -> list[int]:
    return [gpus] if gpus <= size else [size] * -(-gpus // size)


def _nodes_of(packing: Packing, size: int) -> tuple[NodeUse, ...]:
    nodes = []
    for first in range(0, len(packing.gpus), size):
        shares = [
            NodeShare(item.name, item.replica, (index,))
            for index, gpu in enumerate(packing.gpus[first : first + size])
            for item in gpu.replicas
        ]
        nodes.append(NodeUse(size, tuple(sorted(shares))))
    return tuple(nodes)
