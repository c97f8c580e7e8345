"""Policies on what nodes start from, and on the charts that find a driver or a plugin there already."""

from collections.abc import Iterator

from fleet.cloud import node_images, node_types
from fleet.cloud.finding import Finding
from fleet.cloud.node_images import AMI_TYPES
from policies.adapter import Check, Seen, Stack
from policies.groups import NODE_GROUP, Group, groups_in
from policies.helm import CHARTS, charts, is_off
from policies.reading import has, labels, parts, text

DEVICE_PLUGIN = "nvidia-device-plugin"
_EKS_TAKES = "AL2023_x86_64_STANDARD"
"""Where no AMI type is said: one for GPUs has to be asked for."""
_INSTALLED_BY_DEFAULT = ("driver", "toolkit")
"""Parts of the GPU operator that its values don't have to turn on."""
_CLUSTER_POLICY = "kubernetes:nvidia.com/v1:ClusterPolicy"
_KEEPS_OPERATOR_AWAY = ("nvidia.com/gpu.deploy.operands", "nvidia.com/gpu.deploy.device-plugin")


def _ami_type(seen: Seen) -> Iterator[Finding]:
    name = text(seen.props, "amiType")
    if name is None:
        return
    architectures = {node_types.architecture_of(item) for item in Group(seen).types}
    yield from node_images.ami_type_findings(name, architectures=architectures)


def _driver(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    if not group.has_gpus:
        return
    gpus = max((shape.gpus for shape in group.shapes), default=1)
    yield from node_images.driver_findings(group.ami_type or _EKS_TAKES, gpus=gpus)
    if group.ami_type == "CUSTOM" and group.template is not None:
        yield from node_images.custom_image_findings(has_image=has(group.template_props, "imageId"))


def _ended(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    version = _kubernetes(group)
    if group.ami_type is not None and version is not None:
        yield from node_images.ended_findings(group.ami_type, version)


def _kubernetes(group: Group) -> str | None:
    """The Kubernetes version of the nodes; the cluster's where the group says none."""
    own = text(group.props, "version")
    return text(group.cluster.props, "version") if own is None and group.cluster is not None else own


def _release(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    image, release = text(group.template_props, "imageId"), text(seen.props, "releaseVersion")
    if image is not None:
        yield from node_images.image_id_findings(image)
        return
    found = list(node_images.release_findings(release, has_image=False))
    yield from found
    if not found and release is not None:
        yield from node_images.release_version_findings(group.ami_type or _EKS_TAKES, release, _kubernetes(group) or "")


def _preload(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    known = AMI_TYPES.get(group.ami_type or _EKS_TAKES)
    if known is None or known.family == "custom":
        return
    for item in parts(group.template_props, "blockDeviceMappings"):
        yield from node_images.preload_findings(known.family, text(item, "ebs", "snapshotId"))


def _operator(seen: Seen) -> Iterator[Finding]:
    for path in (path for operator, path in operators(seen.stack) if operator is seen):
        names = {group.ami_type or "" for group in groups_in(seen.stack) if group.has_gpus}
        installs = {part: not is_off(seen.props, *path, part, "enabled") for part in _INSTALLED_BY_DEFAULT}
        yield from node_images.operator_findings(names, installs=installs)


def operators(stack: Stack) -> Iterator[tuple[Seen, tuple[str, ...]]]:
    """The GPU operators of a stack, and where each keeps its settings."""
    for release in charts(stack, "gpu-operator"):
        yield release, ("values",)
    for policy in stack.of(_CLUSTER_POLICY):
        parent = stack.by_urn.get(policy.parent)
        if parent is None or parent.type not in CHARTS:  # the chart speaks for its own
            yield policy, ("spec",)


def _device_plugin(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    if not group.has_gpus:
        return
    announcers = [item for item in charts(seen.stack, DEVICE_PLUGIN) if _lands(item, group)]
    announcers += [item for item in _operators_plugins(seen.stack) if _operates(group)]
    yield from node_images.device_plugin_findings(group.ami_type or "", runs_chart=bool(announcers))
    yield from node_images.announcer_findings([item.name for item in announcers])


def _operators_plugins(stack: Stack) -> tuple[Seen, ...]:
    """The operator that brings a device plugin of its own; its policy and its chart are one operator."""
    found = [item for item, path in operators(stack) if not is_off(item.props, *path, "devicePlugin", "enabled")]
    return tuple(found[:1])


def _lands(release: Seen, group: Group) -> bool:
    """Whether the pods of a chart come to the nodes of a group."""
    has, wanted = labels(group.props, "labels"), labels(release.props, "values", "nodeSelector")
    return all(has.get(key) == value for key, value in wanted.items())


def _operates(group: Group) -> bool:
    """Whether the operator's own plugin comes to the nodes of a group: it goes where no label keeps it away."""
    has = labels(group.props, "labels")
    return not any(has.get(key) == "false" for key in _KEEPS_OPERATOR_AWAY)


_GROUPS = (NODE_GROUP,)
CHECKS = (
    Check((node_images.AMI_TYPE,), _GROUPS, _ami_type, relates=True),
    Check((node_images.AMI_DRIVER,), _GROUPS, _driver, relates=True),
    Check((node_images.AMI_ENDED,), _GROUPS, _ended, relates=True),
    Check((node_images.AMI_RELEASE,), _GROUPS, _release, relates=True),
    Check((node_images.PRELOAD,), _GROUPS, _preload, relates=True),
    Check((node_images.OPERATOR_DRIVER,), (*CHARTS, _CLUSTER_POLICY), _operator, relates=True),
    Check((node_images.DEVICE_PLUGIN,), _GROUPS, _device_plugin, relates=True),
)
