"""What nodes start from: AMI types, pinned releases, and the driver against the CUDA of an engine image.

What is not known stays unknown: a driver nobody has stated gives no verdict (`DriverFit.UNKNOWN`), never a pass.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from packaging.version import InvalidVersion, Version

from fleet.cloud.finding import CloudRule, Finding, Grade

ImageFamily = Literal["al2", "al2023", "bottlerocket", "windows", "custom"]
Architecture = Literal["x86_64", "arm64"]
_NVIDIA_AMI = "EKS user guide, EKS-optimized accelerated AMIs; amazon-eks-ami#1817"

AMI_TYPE = CloudRule(
    "ami-type",
    Grade.HIGH,
    "The AMI type is one that EKS knows, for the architecture of the instance",
    "take AL2023_x86_64_NVIDIA or BOTTLEROCKET_x86_64_NVIDIA for GPU nodes",
    "botocore eks AMITypes",
)
AMI_DRIVER = CloudRule(
    "ami-without-driver",
    Grade.HIGH,
    "GPU nodes start from an AMI that carries the NVIDIA driver",
    "take AL2023_x86_64_NVIDIA or BOTTLEROCKET_x86_64_NVIDIA",
    f"{_NVIDIA_AMI}; comfyui-on-eks#26",
)
AMI_ENDED = CloudRule(
    "ami-al2-ended",
    Grade.HIGH,
    "Amazon Linux 2 nodes have a Kubernetes version below 1.33",
    "take an AL2023 or Bottlerocket AMI type",
    "eksctl AmazonLinux2EOLVersion 1.33",
)
AMI_RELEASE = CloudRule(
    "ami-release-unpinned",
    Grade.HIGH,
    "A node group pins the release of its AMI",
    "set release_version, such as 1.34.4-20300101: without it every new release rolls the nodes",
    "pulumi-eks#980, pulumi-eks#1086, pulumi-eks#862, terraform-aws-eks#1826",
)
OPERATOR_DRIVER = CloudRule(
    "gpu-operator-driver",
    Grade.HIGH,
    "On an AMI with driver and toolkit the GPU operator installs neither",
    "set driver.enabled and toolkit.enabled to false in the operator's values",
    "gpu-operator#666; NVIDIA/aicr#2743, which quotes the EKS user guide",
)
DEVICE_PLUGIN = CloudRule(
    "device-plugin-twice",
    Grade.MEDIUM,
    "One device plugin announces the GPUs of a node",
    "keep the NVIDIA device plugin chart away from Bottlerocket nodes, whose image runs one",
    "EKS user guide, device plugin for GPUs: Bottlerocket AMIs contain it, AL2023 AMIs don't",
)
CUDA_DRIVER = CloudRule(
    "cuda-driver",
    Grade.HIGH,
    "The node's driver is new enough for the CUDA version of every engine image on it",
    "take a newer AMI release, or an engine image with an older CUDA version",
    "NVIDIA CUDA Compatibility, minor version compatibility, table 1: docs.nvidia.com/deploy/cuda-compatibility",
)
PRELOAD = CloudRule(
    "image-preload",
    Grade.HIGH,
    "Engine images come from a snapshot of the data volume only on Bottlerocket, which has such a volume",
    "take the bottlerocket family, or leave the snapshot out and pull in parallel",
    "Bottlerocket documentation, data volume; AL2023 keeps images on its root volume",
)

MINIMUM_DRIVERS: Mapping[int, int] = {11: 450, 12: 525, 13: 580}
"""CUDA major version -> the oldest driver branch on which its applications run (source: `CUDA_DRIVER`).

An image that brings NVIDIA's forward compatibility package can do with an older branch; that is not counted on.
"""
AL2_ENDS_AT = (1, 33)
_RELEASE = re.compile(r"v?\d+\.\d+\.\d+-[0-9a-z]+")
"""``1.34.4-20300101`` of Amazon Linux, ``1.50.0-0a1b2c3d`` of Bottlerocket."""
_IMAGE_ID = re.compile(r"ami-[0-9a-f]{8}([0-9a-f]{9})?")
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


class DriverFit(StrEnum):
    """Whether an image's CUDA runs on a node's driver."""

    FITS = "fits"
    TOO_OLD = "too-old"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AmiType:
    """What an AMI type of EKS carries."""

    name: str
    family: ImageFamily
    architecture: Architecture | None
    """``None`` = the image is one's own, and nothing is known of it."""
    has_nvidia: bool
    """Driver and container toolkit."""

    @property
    def has_device_plugin(self) -> bool:
        """Whether the image itself announces GPUs to the kubelet."""
        return self.family == "bottlerocket" and self.has_nvidia


def _linux(name: str) -> AmiType:
    family: ImageFamily = "bottlerocket" if name.startswith("BOTTLE") else "al2023" if "AL2023" in name else "al2"
    nvidia = "NVIDIA" in name or name.endswith("_GPU")
    return AmiType(name, family, "arm64" if "ARM" in name else "x86_64", nvidia)


_LINUX = (
    "AL2_x86_64",
    "AL2_x86_64_GPU",  # in the enumeration of botocore
    "AL2_ARM_64",
    "AL2023_x86_64_STANDARD",
    "AL2023_ARM_64_STANDARD",
    "AL2023_x86_64_NEURON",
    "AL2023_x86_64_NVIDIA",
    "AL2023_ARM_64_NVIDIA",
    *(
        f"BOTTLEROCKET_{arch}{kind}"
        for arch in ("ARM_64", "x86_64")
        for kind in ("", "_FIPS", "_NVIDIA", "_NVIDIA_FIPS")
    ),
)
AMI_TYPES: Mapping[str, AmiType] = {name: _linux(name) for name in _LINUX} | {
    "CUSTOM": AmiType("CUSTOM", "custom", None, has_nvidia=False)
}
"""Linux AMI types by name; a Windows type is no place for engines and counts as unknown."""


def ami_type_findings(name: str, *, architectures: Collection[Architecture] = ()) -> Iterator[Finding]:
    """Whether EKS has such a type for the instances, which have these architectures."""
    found = AMI_TYPES.get(name)
    if found is None:
        yield Finding(AMI_TYPE, f"the AMI type '{name}' is not one for Linux nodes")
        return
    others = sorted(set(architectures) - {found.architecture})
    if found.architecture is not None and others:
        message = f"{name} is for {found.architecture} and the instance is {', '.join(others)}"
        yield Finding(AMI_TYPE, message, "take an AMI type and instances of one architecture")


def driver_findings(ami_type: str, *, gpus: int) -> Iterator[Finding]:
    """Whether GPU nodes get a driver; a custom image is its owner's business."""
    found = AMI_TYPES.get(ami_type)
    if gpus and found is not None and found.family != "custom" and not found.has_nvidia:
        yield Finding(AMI_DRIVER, f"{ami_type} carries no NVIDIA driver, and the nodes have {gpus} GPUs")


def ended_findings(ami_type: str, kubernetes: str) -> Iterator[Finding]:
    """Whether the AMI type still exists for that Kubernetes version."""
    found, version = AMI_TYPES.get(ami_type), _VERSION.match(kubernetes)
    if found is None or found.family != "al2" or version is None:
        return
    if (int(version[1]), int(version[2])) >= AL2_ENDS_AT:
        yield Finding(AMI_ENDED, f"{ami_type} with Kubernetes {kubernetes}")


def release_findings(release: str | None, *, has_image: bool) -> Iterator[Finding]:
    """Whether the AMI release is pinned; a template with an image id pins it by that."""
    if not has_image and (release is None or _RELEASE.fullmatch(release) is None):
        yield Finding(AMI_RELEASE, f"the release of the AMI is {release or 'not set'}")


def image_id_findings(image: str) -> Iterator[Finding]:
    """Whether a template's image is one image and not the newest one of some name."""
    if _IMAGE_ID.fullmatch(image) is None:
        yield Finding(AMI_RELEASE, f"the image of the launch template is {image}", "name one image by its id, ami-…")


def release_version_findings(ami_type: str, release: str, kubernetes: str) -> Iterator[Finding]:
    """Whether the release is one for that Kubernetes version; those of Bottlerocket have numbers of their own."""
    found, wanted, said = AMI_TYPES.get(ami_type), _VERSION.match(kubernetes), _VERSION.match(release)
    if found is None or found.family not in ("al2", "al2023") or wanted is None or said is None:
        return
    if wanted.groups() != said.groups():
        message = f"the release of the AMI is {release} and the Kubernetes version {kubernetes}"
        yield Finding(AMI_RELEASE, message, f"take a release of {kubernetes}")


def operator_findings(ami_types: Collection[str], *, installs: Mapping[str, bool]) -> Iterator[Finding]:
    """Whether the GPU operator installs what the AMI has; ``installs``: driver and toolkit, by the chart's values."""
    carrying = sorted(name for name in ami_types if name in AMI_TYPES and AMI_TYPES[name].has_nvidia)
    twice = [part for part in ("driver", "toolkit") if installs.get(part)]
    if carrying and twice:
        message = f"the GPU operator installs {' and '.join(twice)} on {', '.join(carrying)}, which has it"
        yield Finding(OPERATOR_DRIVER, message, f"set {' and '.join(f'{part}.enabled' for part in twice)} to false")


def device_plugin_findings(ami_type: str, *, runs_chart: bool) -> Iterator[Finding]:
    """Whether two device plugins announce the same GPUs; ``runs_chart``: the chart's pods land on these nodes."""
    found = AMI_TYPES.get(ami_type)
    if runs_chart and found is not None and found.has_device_plugin:
        yield Finding(DEVICE_PLUGIN, f"the device plugin chart runs on {ami_type} nodes, whose image has one")


def announcer_findings(announcers: Collection[str]) -> Iterator[Finding]:
    """Whether two installations announce the GPUs of the same nodes; by name."""
    if len(announcers) > 1:
        yield Finding(DEVICE_PLUGIN, f"{' and '.join(announcers)} announce the same GPUs", "keep one of them")


def custom_image_findings(*, has_image: bool) -> Iterator[Finding]:
    """Whether GPU nodes with the AMI type CUSTOM have the image that it speaks of."""
    if not has_image:
        yield Finding(AMI_DRIVER, "the AMI type is CUSTOM, and the launch template of the GPU nodes has no image_id")


def preload_findings(family: ImageFamily, snapshot: str | None) -> Iterator[Finding]:
    """Whether a snapshot of images lands where the node looks for them."""
    if snapshot is not None and family != "bottlerocket":
        yield Finding(PRELOAD, f"the data volume snapshot {snapshot} with {family}, which has no data volume")


def driver_fit(cuda: str | None, driver: str | None) -> DriverFit:
    """Whether an application of this CUDA version runs on this driver version."""
    needed, branch = minimum_driver(cuda), _major(driver)
    if needed is None or branch is None:
        return DriverFit.UNKNOWN
    return DriverFit.FITS if branch >= needed else DriverFit.TOO_OLD


def minimum_driver(cuda: str | None) -> int | None:
    """The oldest driver branch for a CUDA version; ``None`` = not known."""
    major = _major(cuda)
    return None if major is None else MINIMUM_DRIVERS.get(major)


def cuda_findings(image: str, *, cuda: str | None, driver: str | None) -> Iterator[Finding]:
    """Whether an engine image finds its driver too old; what is unknown is `driver_fit`'s answer and no finding."""
    if driver_fit(cuda, driver) is DriverFit.TOO_OLD:
        message = f"{image} has CUDA {cuda}, which needs driver {minimum_driver(cuda)} or newer; the node has {driver}"
        yield Finding(CUDA_DRIVER, message)


def _major(version: str | None) -> int | None:
    try:
        return None if version is None else Version(version).major
    except InvalidVersion:
        return None


RULES: tuple[CloudRule, ...] = (
    AMI_TYPE,
    AMI_DRIVER,
    AMI_ENDED,
    AMI_RELEASE,
    OPERATOR_DRIVER,
    DEVICE_PLUGIN,
    CUDA_DRIVER,
    PRELOAD,
)
