"""Policies on what nodes start from, and on the charts that find a driver or a plugin there already."""

from collections.abc import Iterator

from fleet.cloud import node_images
from fleet.cloud.finding import Finding
from fleet.cloud.node_images import AMI_TYPES
from policies.adapter import Check, Seen, Stack, StackCheck
from policies.groups import NODE_GROUP, Group, groups_in
from policies.helm import charts
from policies.knowledge import Ground
from policies.reading import at, labels, parts, text

DEVICE_PLUGIN = "nvidia-device-plugin"
_EKS_TAKES = "AL2023_x86_64_STANDARD"
"""Where no AMI type is said: one for GPUs has to be asked for."""
_INSTALLED_BY_DEFAULT = ("driver", "toolkit")
"""Parts of the GPU operator that its values don't have to turn on."""


def _ami_type(seen: Seen) -> Iterator[Finding]:
    name = text(seen.props, "amiType")
    if name is None:
        return
    known = AMI_TYPES.get(name)
    is_gpu = Group(seen).shape is not None  # every GPU instance of the table is x86_64
    architecture = "x86_64" if is_gpu or known is None or known.architecture is None else known.architecture
    yield from node_images.ami_type_findings(name, architecture=architecture)


def _driver(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    if group.shape is not None:
        name = group.ami_type or _EKS_TAKES
        yield from node_images.driver_findings(name, gpus=group.shape.gpus)


def _ended(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    version = text(seen.props, "version")
    if version is None and group.cluster is not None:
        version = text(group.cluster.props, "version")
    if group.ami_type is not None and version is not None:
        yield from node_images.ended_findings(group.ami_type, version)


def _release(seen: Seen) -> Iterator[Finding]:
    has_image = text(Group(seen).template_props, "imageId") is not None
    yield from node_images.release_findings(text(seen.props, "releaseVersion"), has_image=has_image)


def _preload(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    known = AMI_TYPES.get(group.ami_type or _EKS_TAKES)
    if known is None or known.family == "custom":
        return
    for item in parts(group.template_props, "blockDeviceMappings"):
        yield from node_images.preload_findings(known.family, text(item, "ebs", "snapshotId"))


def _operator(stack: Stack, _: Ground) -> Iterator[tuple[Seen | None, Finding]]:
    for release in charts(stack, "gpu-operator"):
        names = {group.ami_type or "" for group in groups_in(stack) if group.shape is not None}
        installs = {part: at(release.props, "values", part, "enabled") is not False for part in _INSTALLED_BY_DEFAULT}
        for finding in node_images.operator_findings(names, installs=installs):
            yield release, finding


def _device_plugin(stack: Stack, _: Ground) -> Iterator[tuple[Seen | None, Finding]]:
    for release in charts(stack, DEVICE_PLUGIN):
        wanted = labels(release.props, "values", "nodeSelector")
        for group in groups_in(stack):
            if group.shape is None:
                continue
            has = labels(group.props, "labels")
            lands = all(has.get(key) == value for key, value in wanted.items())
            for finding in node_images.device_plugin_findings(group.ami_type or "", runs_chart=lands):
                yield group.seen, finding


_GROUPS = (NODE_GROUP,)
CHECKS = (
    Check((node_images.AMI_TYPE,), _GROUPS, _ami_type, relates=True),
    Check((node_images.AMI_DRIVER,), _GROUPS, _driver, relates=True),
    Check((node_images.AMI_ENDED,), _GROUPS, _ended, relates=True),
    Check((node_images.AMI_RELEASE,), _GROUPS, _release, relates=True),
    Check((node_images.PRELOAD,), _GROUPS, _preload, relates=True),
    StackCheck((node_images.OPERATOR_DRIVER,), _operator),
    StackCheck((node_images.DEVICE_PLUGIN,), _device_plugin),
)
