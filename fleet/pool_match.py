"""Whether a deployment can stand on a node pool, and if not, by which rule and numbers."""

from dataclasses import dataclass
from datetime import date

from fleet.hardware import SharingMode, nodes_per_replica
from fleet.node_pools import NodePool
from fleet.packing import refusal
from fleet.parallel_plan import ParallelPlan
from fleet.plan_wish import EvidenceValue, Reason
from fleet.pool_filling import Load, fill, packing_item, replicas_that_fit
from fleet.sharing import SharingWay, context_bytes, isolation_of


@dataclass(frozen=True, slots=True)
class Served:
    """What runs in a placement: the engine, the model and how it is split."""

    engine: str
    version: str
    model_id: str
    plan: ParallelPlan


@dataclass(frozen=True, slots=True)
class PlacementOption:
    """One way to place a deployment."""

    instance_type: str
    gpus: int
    """GPUs of one replica."""
    replicas: int = 1
    sharing: SharingMode = SharingMode.EXCLUSIVE
    memory_bytes: int | None = None
    """What a replica takes of a shared GPU, without its context and graphs; only sharing needs it."""
    purchase: str | None = None
    """``None`` = however the pool is bought."""
    memory_share: float | None = None
    """Of a GPU that several processes share: the part that each replica is told to take."""
    served: Served | None = None
    """``None`` = not said."""

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.replicas < 1:
            raise ValueError(f"{self.instance_type}: {self.gpus} GPUs x {self.replicas} replicas; both are 1 or more")


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment and its possible placements, the preferred first."""

    name: str
    options: tuple[PlacementOption, ...]
    needs_hardware_isolation: bool = False
    until: date | None = None
    """The last day on which it must run; ``None`` = the plan's."""
    reasons: tuple[Reason, ...] = ()
    """Why there are no options, where there are none."""


def load_of(deployment: Deployment, option: PlacementOption) -> Load:
    """What the option puts on a pool."""
    memory_bytes = option.memory_bytes or 0
    return Load(deployment.name, option.gpus, option.replicas, memory_bytes, deployment.needs_hardware_isolation)


def mismatch(deployment: Deployment, option: PlacementOption, pool: NodePool, until: date) -> Reason | None:
    """Why an option can never stand on a pool, or ``None``."""
    if option.instance_type != pool.instance_type:
        text = f"{deployment.name} is planned for {option.instance_type}; pool {pool.name} has {pool.instance_type}"
        return Reason("instance-type", text, {"wanted": option.instance_type, "pool": pool.instance_type})
    if option.purchase not in (None, pool.purchase):
        text = f"{deployment.name} asks for {option.purchase}; pool {pool.name} is bought as {pool.purchase}"
        return Reason("purchase", text, {"wanted": str(option.purchase), "pool": pool.purchase})
    if pool.has_ended(until):
        text = (
            f"the capacity block of pool {pool.name} ends on {pool.ends_on}; {deployment.name} must run until {until}"
        )
        return Reason("capacity-block-end", text, {"ends_on": str(pool.ends_on), "until": str(until)})
    return _sharing_mismatch(deployment, option, pool) or _node_mismatch(deployment, option, pool)


def _sharing_mismatch(deployment: Deployment, option: PlacementOption, pool: NodePool) -> Reason | None:
    way, name = pool.sharing, deployment.name
    evidence: dict[str, EvidenceValue] = {"wanted": option.sharing.value, "pool": way.value}
    if deployment.needs_hardware_isolation and not isolation_of(way).is_hardware:
        text = f"{name} needs hardware isolation; pool {pool.name} shares its GPUs by {way.value}; use MIG or exclusive"
        return Reason("isolation", text, evidence)
    if option.sharing is not way.mode:
        text = f"{name} is planned for sharing '{option.sharing.value}'; pool {pool.name} is '{way.value}'"
        return Reason("sharing", text, evidence)
    if way is SharingWay.EXCLUSIVE:
        return None
    if option.gpus > 1:
        text = (
            f"a replica of {name} takes {option.gpus} GPUs; on a shared GPU ({way.value}) it takes one share of one GPU"
        )
        return Reason("slices", text, evidence | {"gpus": option.gpus})
    if option.memory_bytes is None:
        text = f"what {name} takes of a shared GPU is not known; give memory_bytes"
        return Reason("memory-unknown", text, evidence)
    return refusal(packing_item(load_of(deployment, option)), pool.share(context_bytes=context_bytes()))


def _node_mismatch(deployment: Deployment, option: PlacementOption, pool: NodePool) -> Reason | None:
    size, name = pool.instance.gpus, deployment.name
    if option.gpus <= size or option.gpus % size == 0:
        return None
    evidence: dict[str, EvidenceValue] = {"gpus": option.gpus, "gpus_per_node": size}
    nodes = nodes_per_replica(option.gpus, pool.instance)
    text = f"a replica of {name} takes {option.gpus} GPUs: more than a {pool.instance_type} has ({size}), and no whole"
    return Reason("whole-nodes", f"{text} number of nodes; {size * nodes} would be {nodes} nodes", evidence)


def too_many(pool: NodePool, others: tuple[Load, ...], load: Load) -> Reason | None:
    """Why the pool has too few nodes for a load beside others, or ``None``."""
    needed = len(fill(pool, [*others, load]).nodes)
    if pool.max_nodes is None or needed <= pool.max_nodes:
        return None
    room = replicas_that_fit(pool, others, load)
    evidence: dict[str, EvidenceValue] = {
        "nodes_needed": needed,
        "max_nodes": pool.max_nodes,
        "replicas": load.replicas,
        "replicas_that_fit": room,
    }
    beside = f" beside {', '.join(sorted(other.deployment for other in others))}" if others else ""
    nodes = "1 node" if needed == 1 else f"{needed} nodes"
    text = f"{load.deployment}{beside} needs {nodes}, pool {pool.name} has at most {pool.max_nodes}"
    room_text = f"(room for {room} of {load.replicas} replicas); other pools are not joined"
    return Reason("max-nodes", f"{text} {room_text}", evidence)
