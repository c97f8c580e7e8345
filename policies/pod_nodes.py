"""Policies on pods and the nodes on which they may stand."""

from collections.abc import Iterator, Mapping
from typing import Any

from fleet.cloud import isolation
from fleet.cloud.finding import Finding
from fleet.cloud.labels import GPU_RESOURCE, POOL_LABEL
from fleet.manifest import ManifestError, load_yaml
from policies.adapter import Check, Seen, Stack
from policies.groups import NODE_GROUP
from policies.helm import charts
from policies.images import DEVICE_PLUGIN
from policies.kubernetes_objects import EVERY_TYPE, holds_pods, object_of
from policies.manifests import CONFIG_MAP, is_manifest, rendered
from policies.reading import at, labels
from policies.sharing import CONFIG_LABEL
from workloads import KubernetesObject
from workloads.pod_reading import pod_owners
from workloads.values import as_flag, as_map, as_maps

_SHARED_BY = ("timeSlicing", "mps")


def _shared_names(seen: Seen) -> Iterator[Finding]:
    """Of what makes pods, written by the program or rendered from its manifests."""
    owners = (owner for item in _items(seen) for owner in pod_owners(item, seen.ground.stack.pools))
    for owner in filter(isolation.asks_whole, owners):
        yield from isolation.shared_name_findings(owner, frozenset(_sharing_pools(seen.stack)))


def _items(seen: Seen) -> tuple[KubernetesObject, ...]:
    if seen.type == CONFIG_MAP and is_manifest(seen):
        return rendered(seen)
    return (object_of(seen),) if holds_pods(seen) else ()


def _sharing_pools(stack: Stack) -> Iterator[str]:
    """The pools whose nodes have a configuration that shares GPUs without another name."""
    for release in charts(stack, DEVICE_PLUGIN):
        stated = as_map(at(release.props, "values", "config", "map"))
        sharing = {name for name, text in stated.items() if _shares_unnamed(str(text))}
        default = at(release.props, "values", "config", "default")
        for group in stack.of(NODE_GROUP):
            own = labels(group.props, "labels")
            if own.get(CONFIG_LABEL, default) in sharing:
                yield own.get(POOL_LABEL) or group.name


def _shares_unnamed(text: str) -> bool:
    """Whether a configuration of the device plugin cuts GPUs and leaves them their name."""
    try:
        found: Any = load_yaml(text, source="the device plugin's configuration")
    except ManifestError:
        return False
    sharing = as_map(as_map(found).get("sharing"))
    return any(_keeps_name(as_map(sharing.get(way))) for way in _SHARED_BY)


def _keeps_name(way: Mapping[str, Any]) -> bool:
    shared = [item for item in as_maps(way.get("resources")) if item.get("name", GPU_RESOURCE) == GPU_RESOURCE]
    return as_flag(way.get("renameByDefault")) is not True and any(not item.get("rename") for item in shared)


CHECKS = (Check((isolation.SHARED_NAME,), EVERY_TYPE, _shared_names, relates=True),)
