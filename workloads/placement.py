"""Where pods may stand and what they take there: node pools, the GPU resource, processors and memory."""

from dataclasses import dataclass

from fleet.cloud.labels import GPU_TAINT_KEY, POOL_LABEL, gpu_resource
from fleet.hardware import InstanceType, gpu, instance, nodes_per_replica
from fleet.manifest import PinnedManifest
from fleet.node_pools import NodePool
from fleet.sharing import SharingWay
from fleet.spec import Hardware
from workloads.ground import RenderGround
from workloads.names import KubernetesObject
from workloads.refusal import Reason, RenderRefused

POD_PART = 0.8
"""Of a node's processors and memory that its engines may take; the rest is the node's own and its daemons'."""
SHM_MIB_PER_GPU = 2048
"""Shared memory for the collective operations of one GPU."""
SHM_PART = 0.25
"""Of the pod's memory that shared memory may take: it counts as the pod's."""
_INSTANCE_LABEL = "node.kubernetes.io/instance-type"


@dataclass(frozen=True, slots=True)
class Place:
    """The hardware of a one-node replica, found on a cluster."""

    hardware: Hardware
    shape: InstanceType
    pools: tuple[NodePool, ...]
    """Empty = the cluster's pools are not known."""
    resource: str
    """What the pod asks for to get its GPUs."""
    part: float
    """Of the node that one replica takes."""
    by_claim: bool = False
    """GPUs are asked for by a claim instead of a resource (`workloads.claims`)."""

    @property
    def cpu(self) -> int:
        """Processors that are kept for a replica."""
        return max(1, int(self.shape.vcpus * self.part * POD_PART))

    @property
    def memory_mib(self) -> int:
        """Memory that a replica gets and can't exceed."""
        return max(1024, int(self.shape.memory_mib * self.part * POD_PART))

    @property
    def shm_mib(self) -> int:
        """Shared memory of a replica."""
        return min(SHM_MIB_PER_GPU * self.hardware.gpus, int(self.memory_mib * SHM_PART))

    def node_affinity(self) -> KubernetesObject:
        """Only nodes of the pools, or of the instance type where no pool is known."""
        names = sorted(pool.name for pool in self.pools)
        key, values = (POOL_LABEL, names) if names else (_INSTANCE_LABEL, [self.shape.name])
        term = {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

    def tolerations(self) -> list[KubernetesObject]:
        """The taint of GPU nodes; that of a driver which is not ready yet keeps pods away."""
        return [{"key": GPU_TAINT_KEY, "operator": "Exists", "effect": "NoSchedule"}]


def place_of(pinned: PinnedManifest, ground: RenderGround) -> Place:
    """The place of a pinned manifest.

    Raises:
        RenderRefused: a replica over several nodes, no pool that fits, or a MIG profile that can't be told.
    """
    hardware = pinned.spec.hardware
    if hardware is None:
        raise RenderRefused(
            pinned.name, Reason.DISAGGREGATED, "it has pools instead of one hardware", "give hardware, or wait for it"
        )
    shape = instance(hardware.instance_type)
    nodes = nodes_per_replica(hardware.gpus, shape)
    if nodes > 1:
        message = (
            f"a replica of {hardware.gpus} GPUs spans {nodes} {shape.name}; only replicas on one node are rendered"
        )
        remedy = f"take a plan for at most {shape.gpus} GPUs, or an instance type with more of them"
        raise RenderRefused(pinned.name, Reason.SEVERAL_NODES, message, remedy)
    fitting = tuple(pool for pool in ground.pools if _fits(pool, hardware))
    plain = tuple(pool for pool in fitting if pool.allocation == "device-plugin")
    pools = plain or fitting  # a pod asks in one way
    if ground.pools and not pools:
        raise RenderRefused(pinned.name, Reason.NO_POOL, *_no_pool(hardware, ground.pools))
    way = SharingWay(hardware.sharing)
    profile = _profile(pinned, shape, pools) if way is SharingWay.MIG else None
    by_claim = bool(pools) and not plain
    return Place(hardware, shape, pools, gpu_resource(way, profile), _part(hardware, shape, profile), by_claim)


def _fits(pool: NodePool, hardware: Hardware) -> bool:
    """A manifest can't ask for slices that are cut on demand, so a pool of such fits none."""
    asked = (hardware.instance_type, hardware.purchase, hardware.sharing)
    return (pool.instance_type, pool.purchase, pool.sharing.value) == asked


def _no_pool(hardware: Hardware, pools: tuple[NodePool, ...]) -> tuple[str, str]:
    known = ", ".join(
        f"{pool.name} ({pool.instance_type}, {pool.purchase}, {pool.sharing.value})"
        for pool in sorted(pools, key=lambda pool: pool.name)
    )
    wanted = f"{hardware.instance_type}, {hardware.purchase}, {hardware.sharing}"
    return f"no pool has {wanted}; there are {known}", "add such a pool to the environment, or pin again"


def _profile(pinned: PinnedManifest, shape: InstanceType, pools: tuple[NodePool, ...]) -> str:
    profiles = sorted({pool.mig_profile for pool in pools if pool.mig_profile is not None})
    if len(profiles) == 1:
        return profiles[0]
    if not profiles:
        message = f"the MIG profile of the pools with {shape.name} is not known"
        raise RenderRefused(pinned.name, Reason.MIG_PROFILE, message, "give the environment's pools.yaml with it")
    message = f"the pools with {shape.name} have different MIG profiles: {', '.join(profiles)}"
    raise RenderRefused(pinned.name, Reason.MIG_PROFILE, message, "leave one pool of this instance type with MIG")


def _part(hardware: Hardware, shape: InstanceType, profile: str | None) -> float:
    """The share of the node: its GPUs over the node's, and of a shared GPU the replica's part."""
    whole = hardware.gpus / shape.gpus
    if profile is not None:
        return whole / next(item.per_gpu for item in gpu(shape.gpu).mig_profiles if item.name == profile)
    if hardware.sharing == "exclusive":
        return whole
    return whole * (hardware.memory_share or 0.5)
