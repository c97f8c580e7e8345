"""Policies on GPUs that several pods share, as the labels of nodes and the values of charts say it."""

from collections.abc import Iterator, Mapping
from typing import Any

from fleet.cloud import node_sharing
from fleet.cloud.finding import Finding
from fleet.cloud.node_sharing import NodeSharing
from fleet.hardware import GpuModel, gpu
from fleet.manifest import ManifestError, load_yaml
from fleet.sharing import SharingWay
from policies.adapter import Check, Seen, Stack, StackCheck
from policies.groups import CLUSTER, NODE_GROUP, Group
from policies.helm import charts
from policies.images import DEVICE_PLUGIN
from policies.knowledge import Ground
from policies.reading import at, flag, labels, text

MIG_LABEL = "nvidia.com/mig.config"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
DRA_DRIVERS = ("dra-driver-nvidia-gpu", "nvidia-dra-driver-gpu")
"""The chart's name, and its name of before."""
_EVERY_GPU = "all-"
_UNCUT = "all-disabled"
_WAYS = {"timeSlicing": SharingWay.TIME_SLICING, "mps": SharingWay.MPS}
"""How the device plugin's configuration writes them."""


def _mig(seen: Seen) -> Iterator[Finding]:
    config = labels(seen.props, "labels").get(MIG_LABEL, "")
    if config in ("", _UNCUT):
        return
    profile = _mig_profile(seen)
    for model in _models(Group(seen)):
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
    if not config.startswith(_EVERY_GPU) or "." not in config:
        return None
    return config.removeprefix(_EVERY_GPU).replace(".me", "+me")


def _models(group: Group) -> Iterator[GpuModel]:
    """The GPUs of the nodes; a part of one has no instances of its own."""
    for shape in group.shapes:
        whole = gpu(shape.gpu)
        yield whole if shape.gpu_fraction == 1 else whole.model_copy(update={"mig_profiles": ()})


def _shares(seen: Seen) -> Iterator[Finding]:
    name = labels(seen.props, "labels").get(CONFIG_LABEL)
    if name is None:
        return
    for release in charts(seen.stack, DEVICE_PLUGIN):
        stated = text(release.props, "values", "config", "map", name)
        if stated is not None:
            yield from node_sharing.share_findings(_plugin_sharing(stated))


def _plugin_sharing(stated: str) -> NodeSharing:
    """What a configuration of the device plugin says."""
    try:
        found: Any = load_yaml(stated, source="the device plugin's configuration")
    except ManifestError:
        return NodeSharing(SharingWay.EXCLUSIVE)
    sharing = found.get("sharing") if isinstance(found, Mapping) else None
    for key, way in _WAYS.items():
        if isinstance(sharing, Mapping) and key in sharing:
            replicas = [item.get("replicas") for item in sharing[key].get("resources", ())]
            return NodeSharing(way, shares=next((int(item) for item in replicas if item is not None), None))
    return NodeSharing(SharingWay.EXCLUSIVE)


def _dynamic(stack: Stack, _: Ground) -> Iterator[tuple[Seen | None, Finding]]:
    for release in charts(stack, *DRA_DRIVERS):
        if not flag(at(release.props, "values") or {}, "featureGates", "DynamicMIG"):
            continue
        sharing = NodeSharing(SharingWay.DYNAMIC_SLICES, uses_dra=True)
        for cluster in stack.of(CLUSTER):
            for finding in node_sharing.dynamic_findings(sharing, text(cluster.props, "version") or "1"):
                yield release, finding


_GROUPS = (NODE_GROUP,)
CHECKS = (
    Check((node_sharing.MIG_SUPPORT, node_sharing.MIG_PROFILE), _GROUPS, _mig, relates=True),
    Check((node_sharing.MIG_IMAGE,), _GROUPS, _mig_image, relates=True),
    Check((node_sharing.SHARES,), _GROUPS, _shares, relates=True),
    StackCheck((node_sharing.DYNAMIC,), _dynamic),
)
WITHOUT_POLICY = {
    node_sharing.TENANTS.id: "a pool does not say whose pods come to it; manifests do: gpu-isolation, manifest-refused",
}
