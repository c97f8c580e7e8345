"""GPUs that several pods share: what the hardware of a pool can do, and what tenants may be given."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.node_images import AMI_TYPES
from fleet.hardware import GpuModel, gpu_models
from fleet.sharing import LayoutError, SharingWay, isolation_of, profile_of, way_facts

DYNAMIC_SINCE = (1, 34)
"""Kubernetes from which the EKS guide recommends dynamic resource allocation for GPUs."""

MIG_SUPPORT = CloudRule(
    "mig-without-hardware",
    Grade.HIGH,
    "GPUs are cut into MIG instances where they can be",
    "share by time slices or MPS, or take a GPU with MIG",
    "NVIDIA MIG user guide, supported GPUs",
)
MIG_PROFILE = CloudRule(
    "mig-profile",
    Grade.HIGH,
    "The MIG profile is one that the GPU has",
    "take one of the GPU's profiles",
    "NVIDIA MIG user guide, supported profiles",
)
TENANTS = CloudRule(
    "shared-gpu-isolation",
    Grade.CRITICAL,
    "Tenants that need isolation never share a GPU without hardware isolation",
    "give them exclusive GPUs or MIG instances",
    "NVIDIA/k8s-device-plugin README: shared GPUs have one fault domain and no memory isolation",
)
SHARES = CloudRule(
    "gpu-shares",
    Grade.HIGH,
    "Pools with time slices or MPS say into how many shares a GPU goes, and no others do",
    "set 2 or more shares with sharing time-slicing or mps, and none otherwise",
    "NVIDIA/k8s-device-plugin README, sharing; docs.nvidia.com/deploy/mps for the limit of MPS",
)
DYNAMIC = CloudRule(
    "dynamic-slices-allocation",
    Grade.HIGH,
    "MIG instances that are cut on demand need dynamic resource allocation and Kubernetes 1.34; others need neither",
    "set allocation to dra on Kubernetes 1.34 or newer, or cut the GPUs when the node starts (mig)",
    "EKS user guide, NVIDIA DRA driver or device plugin",
)
MIG_IMAGE = CloudRule(
    "mig-on-bottlerocket",
    Grade.HIGH,
    "Nodes with MIG instances start from AL2023, where the device plugin announces each profile by name",
    "take an AL2023 AMI type: nobody has shown that Bottlerocket's own plugin announces nvidia.com/mig-PROFILE",
    "bottlerocket packages/nvidia-k8s-device-plugin: its configuration has migStrategy none",
)


@dataclass(frozen=True, slots=True)
class NodeSharing:
    """How the GPUs of a group of nodes are shared."""

    way: SharingWay
    profile: str | None = None
    """The MIG profile; ``None`` = none is named."""
    shares: int | None = None
    """Pods per GPU; ``None`` = not said."""
    uses_dra: bool = False


def mig_findings(model: GpuModel, sharing: NodeSharing) -> Iterator[Finding]:
    """Whether the GPU can be cut like that; a part of a GPU has no profiles of its own."""
    if not sharing.way.has_slices and sharing.profile is None:
        return
    if not model.mig_profiles:
        able = ", ".join(sorted(item.name for item in gpu_models().values() if item.mig_profiles))
        yield Finding(MIG_SUPPORT, f"sharing '{sharing.way.value}' on {model.name}, which has no MIG; {able} have it")
    elif sharing.profile is not None:
        try:
            profile_of(model, sharing.profile)
        except LayoutError as error:
            yield Finding(MIG_PROFILE, str(error))
    elif sharing.way is SharingWay.MIG:
        profiles = ", ".join(item.name for item in model.mig_profiles)
        yield Finding(MIG_PROFILE, "sharing 'mig' without a profile", f"name one of {profiles}")


def mig_image_findings(way: SharingWay, ami_type: str) -> Iterator[Finding]:
    """Whether pods can ask the nodes for the instances that they are cut into."""
    found = AMI_TYPES.get(ami_type)
    if way is SharingWay.MIG and found is not None and found.has_device_plugin:
        yield Finding(MIG_IMAGE, f"sharing 'mig' on {ami_type} nodes")


def share_findings(sharing: NodeSharing) -> Iterator[Finding]:
    """Whether the number of shares goes with the way of sharing."""
    wants, most = sharing.way in (SharingWay.TIME_SLICING, SharingWay.MPS), way_facts()[sharing.way].max_processes
    if not wants and sharing.shares is not None:
        yield Finding(SHARES, f"{sharing.shares} shares of each GPU with sharing '{sharing.way.value}'")
    if wants and (sharing.shares is None or sharing.shares < 2):
        said = "no number of shares" if sharing.shares is None else f"{sharing.shares} share"
        yield Finding(SHARES, f"sharing '{sharing.way.value}' with {said}")
    if wants and sharing.uses_dra:
        yield Finding(SHARES, f"sharing '{sharing.way.value}' with resource claims", "set allocation to device-plugin")
    if wants and most is not None and (sharing.shares or 0) > most:
        message = f"{sharing.shares} shares of each GPU by {sharing.way.value}, which holds {most} processes"
        yield Finding(SHARES, message, f"take at most {most}")


def tenant_findings(way: SharingWay, *, tenants: int, needs_isolation: bool) -> Iterator[Finding]:
    """Whether tenants who need isolation share GPUs that isolate nothing; one tenant alone has no neighbour."""
    if needs_isolation and tenants > 1 and not isolation_of(way).is_hardware:
        weak = isolation_of(way)
        degrees = f"memory {weak.memory.value}, faults {weak.fault.value}, compute {weak.compute.value}"
        yield Finding(TENANTS, f"{tenants} tenants that need isolation share GPUs by {way.value} ({degrees})")


def dynamic_findings(sharing: NodeSharing, kubernetes: str) -> Iterator[Finding]:
    """Whether slices have what cuts them: resource claims those on demand, the MIG manager all others."""
    if sharing.way is SharingWay.MIG and sharing.uses_dra:
        message = "sharing 'mig' with resource claims: nothing cuts the GPUs when a node starts"
        yield Finding(DYNAMIC, message, "set sharing to dynamic-slices, or allocation to device-plugin")
    if sharing.way is not SharingWay.DYNAMIC_SLICES:
        return
    version = re.match(r"(\d+)\.(\d+)", kubernetes)
    if not sharing.uses_dra:
        yield Finding(DYNAMIC, "dynamic slices with the device plugin, which announces only what is cut already")
    if version is None or (int(version[1]), int(version[2])) < DYNAMIC_SINCE:
        yield Finding(DYNAMIC, f"dynamic slices on Kubernetes {kubernetes}")


RULES: tuple[CloudRule, ...] = (MIG_SUPPORT, MIG_PROFILE, TENANTS, SHARES, DYNAMIC, MIG_IMAGE)
