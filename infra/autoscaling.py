"""Which pools Cluster Autoscaler gives and takes nodes, and what it has to know of a node that is not there yet.

Of a managed node group it asks EKS for labels, taints and tags; tags say what resources a node will have, and win over
what it works out from the instance type (kubernetes/autoscaler, cluster-autoscaler/cloudprovider/aws/aws_manager.go).
"""

from collections.abc import Mapping

from fleet.cloud.interfaces import EFA_TYPES, efa_layout
from fleet.cloud.labels import EFA_RESOURCE, GPU_RESOURCE, gpu_resource
from fleet.cloud.purchase import Buying
from fleet.sharing import SharingWay
from infra.gpu_sharing import GPU_LABEL, node_labels
from infra.stack_config import PoolConfig, StackConfig
from infra.user_data import EFA_HUGE_PAGES, shares

RESOURCE_TAG = "k8s.io/cluster-autoscaler/node-template/resources/"
ACCELERATOR_LABEL = "k8s.amazonaws.com/accelerator"
"""Nodes with it are not ready until ``nvidia.com/gpu`` is announced, so none is added in their place meanwhile."""
_HUGE_PAGE_MIB = 2
_DISK_PART = 0.8
"""Of a disk's bytes, what pods may count on: the file system, images and the kubelet's own limits take the rest."""
_BYTES_PER_GB, _BYTES_PER_GIB = 10**9, 2**30


def is_scaled(pool: PoolConfig, config: StackConfig) -> bool:
    """Whether the pool's number of nodes is the autoscaler's.

    Never that of a Capacity Block, which is paid whether it is used or not, and whose end EKS plans itself. Of claims
    (DRA) the autoscaler knows nothing as long as no node announces its GPUs.
    """
    has_room = pool.max_nodes is not None and pool.min_nodes < pool.max_nodes
    is_block = Buying.of(pool.purchase, pool.reservation_id).is_block
    return config.autoscaler != "none" and has_room and not is_block and pool.allocation != "dra"


def is_system_scaled(config: StackConfig) -> bool:
    """Whether the number of system nodes is the autoscaler's."""
    return config.autoscaler != "none" and config.system_nodes.min_nodes < config.system_nodes.max_nodes


def stays_empty(config: StackConfig) -> tuple[str, ...]:
    """The pools that begin without a node and that nothing adds one to."""
    return tuple(
        pool.name for pool in config.pools if not (pool.min_nodes or pool.desired_nodes or is_scaled(pool, config))
    )


def scaled_labels(pool: PoolConfig) -> dict[str, str]:
    """The labels of nodes that the autoscaler adds; where GPUs are shared, no ``nvidia.com/gpu`` is ever announced."""
    labels = node_labels(pool)
    return labels | {ACCELERATOR_LABEL: labels[GPU_LABEL]} if pool.sharing is SharingWay.EXCLUSIVE else labels


def node_template(pool: PoolConfig) -> Mapping[str, str]:
    """The tags of a node group that say what a node of it will have."""
    resources = {GPU_RESOURCE: "0", "ephemeral-storage": f"{_disk_gib(pool)}Gi"}
    resources[gpu_resource(pool.sharing, pool.mig_profile)] = str(pool.instance.gpus * _parts(pool))
    if pool.efa:
        resources[EFA_RESOURCE] = str(sum(item.type in EFA_TYPES for item in efa_layout(pool.instance)))
        resources["hugepages-2Mi"] = f"{EFA_HUGE_PAGES * _HUGE_PAGE_MIB}Mi"
    return {f"{RESOURCE_TAG}{name}": amount for name, amount in sorted(resources.items())}


def _parts(pool: PoolConfig) -> int:
    """Into how many parts a GPU is cut."""
    if pool.sharing is SharingWay.EXCLUSIVE:
        return 1
    if pool.sharing is SharingWay.MIG:
        return next(profile.per_gpu for profile in pool.gpu.mig_profiles if profile.name == pool.mig_profile)
    return shares(pool)


def _disk_gib(pool: PoolConfig) -> int:
    """Pods' files lie on the local disks, which are joined, else on the volume."""
    disks = pool.instance.local_storage
    if disks is None:
        return int(pool.root_volume_gib * _DISK_PART)
    return int(disks.disks * disks.gigabytes_per_disk * _BYTES_PER_GB / _BYTES_PER_GIB * _DISK_PART)
