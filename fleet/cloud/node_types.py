"""Instance types that nobody here knows, and which version of a launch template its nodes follow.

Every other rule on nodes asks the table of instance types, or the template; what stands in neither is said here.
"""

import re
from collections.abc import Iterator

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.node_images import Architecture
from fleet.hardware import instance_types
from fleet.nearest import did_you_mean

_NAME = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+")
_NUMBER = re.compile(r"[1-9]\d*(\.0)?")
"""Numbers come as ``7`` or, through the engine, as ``7.0``."""
_GPU_FAMILY = re.compile(r"(g|gr|p)\d")
"""Families of instances with NVIDIA GPUs begin like this."""

_ARM = re.compile(r"[a-z]+\d+g|a1\.|p6e-gb")
"""Families with Arm processors: a ``g`` behind the generation, the first of them, and those of Grace."""

UNKNOWN_TYPE = CloudRule(
    "instance-type-unknown",
    Grade.MEDIUM,
    "The GPU instance types of a node group are ones whose GPUs, network cards and purchase are known",
    "take a type of fleet/data/instances.json; on another nothing is judged: interfaces, sharing, purchase",
    "own rule; EC2 DescribeInstanceTypes is where the table comes from",
)
TEMPLATE_VERSION = CloudRule(
    "template-version-unpinned",
    Grade.HIGH,
    "A node group names the version of its launch template by number",
    "pass the template's latest_version: a change of the template is a change of the node group then",
    "botocore eks LaunchTemplateSpecification: without a version the template's default one is taken",
)


def is_gpu_type(name: str) -> bool:
    """Whether an instance type has NVIDIA GPUs, by the table or by its family."""
    return name in instance_types() or _GPU_FAMILY.match(name.strip().casefold()) is not None


def is_arm(name: str) -> bool:
    """Whether an instance type has an Arm processor, by its family."""
    return _ARM.match(name.strip().casefold()) is not None


def architecture_of(name: str) -> Architecture:
    """The architecture of an instance type's processors."""
    return "arm64" if is_arm(name) else "x86_64"


def type_findings(name: str) -> Iterator[Finding]:
    """Whether an instance type is no name of one, or has GPUs of which nothing is known."""
    if name in instance_types():
        return
    if _NAME.fullmatch(name) is None:
        yield Finding(UNKNOWN_TYPE, f"'{name}' is no name of an instance type{did_you_mean(name, instance_types())}")
    elif is_gpu_type(name):
        yield Finding(UNKNOWN_TYPE, f"nothing is known of the GPU instance type '{name}'")


def template_version_findings(version: str | None) -> Iterator[Finding]:
    """Whether the version of a launch template is a number; ``None`` = nothing is said."""
    if version is None or _NUMBER.fullmatch(version) is None:
        yield Finding(TEMPLATE_VERSION, f"the version of the launch template is {version or 'not set'}")


RULES: tuple[CloudRule, ...] = (UNKNOWN_TYPE, TEMPLATE_VERSION)
