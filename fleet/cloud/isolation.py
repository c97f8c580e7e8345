"""Tenants that need a GPU of their own, on nodes that give the same name to a whole GPU and to a share of one."""

from collections.abc import Iterator, Set

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.labels import GPU_RESOURCE, SHARED_GPU_RESOURCE
from fleet.cloud.objects import PodOwner

SHARED_NAME = CloudRule(
    "gpu-isolation-nodes",
    Grade.HIGH,
    "Tenants that need isolation stand on no node that shares its GPUs under the name of whole ones",
    f"set renameByDefault: true, which makes shares {SHARED_GPU_RESOURCE}, or take a pool that shares none",
    "NVIDIA/k8s-device-plugin README, sharing: without renameByDefault a share is called as the whole",
)


def asks_whole(owner: PodOwner) -> bool:
    """Whether pods need isolation and ask for whole GPUs, as far as a name says it."""
    return owner.needs_isolation and any(GPU_RESOURCE in item.devices for item in owner.containers)


def shared_name_findings(owner: PodOwner, sharing_pools: Set[str]) -> Iterator[Finding]:
    """Whether its pods may get a share of a GPU instead of a whole one; who names no pool may come to any."""
    if not asks_whole(owner):
        return
    at_risk = sorted(sharing_pools & set(owner.pools) if owner.pools else sharing_pools)
    if at_risk:
        where = f"{GPU_RESOURCE} is a share of a GPU on {', '.join(at_risk)}"
        yield Finding(SHARED_NAME, f"{owner.id} needs isolation by hardware, and {where}")


RULES: tuple[CloudRule, ...] = (SHARED_NAME,)
