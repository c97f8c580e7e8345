"""Policies on GPUs that several pods share, as the labels of nodes and the values of charts say it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.cloud import node_sharing
from fleet.cloud.finding import Finding
from fleet.cloud.node_sharing import NodeSharing
from fleet.hardware import GpuModel, gpu
from fleet.manifest import ManifestError, load_yaml
from fleet.sharing import SharingWay
from policies.adapter import Check, Seen
from policies.groups import CLUSTER, NODE_GROUP, Group
from policies.helm import CHARTS, chart_name, charts
from policies.images import DEVICE_PLUGIN
from policies.reading import at, flag, labels, text

MIG_LABEL = "nvidia.com/mig.config"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
DRA_DRIVERS = ("dra-driver-nvidia-gpu", "nvidia-dra-driver-gpu")
"""The chart's name, and its name of before."""
_EVERY_GPU = "all-"
_PROFILE = re.compile(r"all-\d")
"""Every GPU in instances of one profile; other names are those of mixed layouts, such as ``all-balanced``."""
_UNCUT = "all-disabled"
_WAYS = {"timeSlicing": SharingWay.TIME_SLICING, "mps": SharingWay.MPS}
"""How the device plugin's configuration writes them."""


def _mig(seen: Seen) -> Iterator[Finding]:
    models, profile = tuple(_models(Group(seen))), _mig_profile(seen)
    if labels(seen.props, "labels").get(MIG_LABEL, _UNCUT) in ("", _UNCUT):
        return
    for model in models:
        if profile is not None:
            yield from node_sharing.mig_findings(model, NodeSharing(SharingWay.MIG, profile))
        elif not model.mig_profiles:  # whatever the configuration cuts them into
            yield from node_sharing.mig_findings(model, NodeSharing(SharingWay.MIG))


def _mig_image(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    if _mig_profile(seen) is not None and group.ami_type is not None:
        yield from node_sharing.mig_image_findings(SharingWay.MIG, group.ami_type)


def _mig_profile(seen: Seen) -> str | None:
    """The profile into which every GPU of the nodes is cut; a mixed configuration is the MIG manager's own affair."""
    config = labels(seen.props, "labels").get(MIG_LABEL, "")
    if _PROFILE.match(config) is None:
        return None
    return config.removeprefix(_EVERY_GPU).replace(".me", "+me")


def _models(group: Group) -> Iterator[GpuModel]:
    """The GPUs of the nodes; a part of one has no instances of its own."""
    for shape in group.shapes:
        whole = gpu(shape.gpu)
        yield whole if shape.gpu_fraction == 1 else whole.model_copy(update={"mig_profiles": ()})


def _shares(seen: Seen) -> Iterator[Finding]:
    name = labels(seen.props, "labels").get(CONFIG_LABEL)
    for release in charts(seen.stack, DEVICE_PLUGIN):
        configs = labels(release.props, "values", "config", "map")
        chosen = name or text(release.props, "values", "config", "default")
        if chosen in configs:
            yield from _of_config(chosen, configs[chosen])
        elif name is not None and configs:
            message = f"the nodes ask for the device plugin's configuration '{name}'"
            yield Finding(node_sharing.SHARES, f"{message}; there are {', '.join(sorted(configs))}", "name one of them")


def _of_config(name: str, stated: str) -> Iterator[Finding]:
    """What is wrong with a configuration of the device plugin; each of its resources is judged."""
    try:
        found: Any = load_yaml(stated, source="the device plugin's configuration")
    except ManifestError as error:
        yield Finding(node_sharing.SHARES, f"the configuration '{name}' can't be read: {error}", "write YAML")
        return
    sharing = found.get("sharing") if isinstance(found, Mapping) else None
    ways = {way: sharing[key] for key, way in _WAYS.items() if isinstance(sharing, Mapping) and key in sharing}
    if len(ways) > 1:
        yield Finding(node_sharing.SHARES, f"the configuration '{name}' has time slices and MPS", "take one of them")
    for way, settings in ways.items():
        for replicas in _replicas(settings):
            if replicas is None or isinstance(replicas, int):
                yield from node_sharing.share_findings(NodeSharing(way, shares=replicas))
            else:
                message = f"'{replicas}' shares of each GPU by {way.value}"
                yield Finding(node_sharing.SHARES, message, "take a whole number from 2 up")


def _replicas(settings: object) -> tuple[object, ...]:
    """The shares of each resource; a configuration without resources says no number."""
    resources = settings.get("resources") if isinstance(settings, Mapping) else None
    if not isinstance(resources, Sequence) or isinstance(resources, str) or not resources:
        return (None,)
    return tuple(item.get("replicas") if isinstance(item, Mapping) else str(item) for item in resources)


def _dynamic(seen: Seen) -> Iterator[Finding]:
    if chart_name(seen) not in DRA_DRIVERS or not flag(at(seen.props, "values") or {}, "featureGates", "DynamicMIG"):
        return
    sharing = NodeSharing(SharingWay.DYNAMIC_SLICES, uses_dra=True)
    for cluster in seen.stack.of(CLUSTER):
        yield from node_sharing.dynamic_findings(sharing, text(cluster.props, "version") or "1")


_GROUPS = (NODE_GROUP,)
CHECKS = (
    Check((node_sharing.MIG_SUPPORT, node_sharing.MIG_PROFILE), _GROUPS, _mig, relates=True),
    Check((node_sharing.MIG_IMAGE,), _GROUPS, _mig_image, relates=True),
    Check((node_sharing.SHARES,), _GROUPS, _shares, relates=True),
    Check((node_sharing.DYNAMIC,), CHARTS, _dynamic, relates=True),
)
WITHOUT_POLICY = {
    node_sharing.TENANTS.id: "a pool does not say whose pods come to it; manifests do: gpu-isolation, manifest-refused",
}
