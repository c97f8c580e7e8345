"""The names that the cluster and the workloads on it agree on: labels, taints, and what pods ask a node for."""

from fleet.sharing import SharingWay

PREFIX = "enginehouse.dev"
POOL_LABEL = f"{PREFIX}/pool"
"""On nodes: the name of their pool."""
DEPLOYMENT_LABEL = f"{PREFIX}/deployment"
"""On everything that a manifest renders to: the deployment's name."""
IDENTITY_LABEL = f"{PREFIX}/identity"
"""On the objects and pods of a deployment: the identity of its pinned manifest."""
MANIFEST_LABEL = f"{PREFIX}/manifest"
"""On a ConfigMap that carries a pinned manifest: the deployment's name."""
SHARING_LABEL = f"{PREFIX}/gpu-sharing"
"""On pods: how the GPUs that they ask for are shared."""
ISOLATION_LABEL = f"{PREFIX}/isolation"
"""On deployments: whether others may be on the same GPU."""

GPU_TAINT_KEY = "nvidia.com/gpu"
GPU_TAINT_VALUE = "true"
GPU_RESOURCE = "nvidia.com/gpu"
SHARED_GPU_RESOURCE = "nvidia.com/gpu.shared"
"""What the device plugin calls GPUs cut in time or by MPS, where it is told to rename them (``renameByDefault``)."""
EFA_RESOURCE = "vpc.amazonaws.com/efa"
MIG_PREFIX = "nvidia.com/mig-"


def mig_resource(profile: str) -> str:
    """What pods ask for to get one instance of a MIG profile: ``1g.10gb`` -> ``nvidia.com/mig-1g.10gb``."""
    return f"{MIG_PREFIX}{profile.replace('+', '.')}"


def gpu_resource(way: SharingWay, mig_profile: str | None = None) -> str:
    """What pods ask for on a pool that shares its GPUs in this way.

    Raises:
        ValueError: MIG without a profile, or slices that are cut on demand, which pods claim by DRA.
    """
    if way is SharingWay.EXCLUSIVE:
        return GPU_RESOURCE
    if way in (SharingWay.MPS, SharingWay.TIME_SLICING):
        return SHARED_GPU_RESOURCE
    if way is SharingWay.MIG and mig_profile is not None:
        return mig_resource(mig_profile)
    raise ValueError(f"pods have no resource to ask for with sharing '{way.value}' and MIG profile {mig_profile}")
