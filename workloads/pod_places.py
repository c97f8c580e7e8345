"""Where an object of any kind says what pods are like: a built-in one, or a custom one that nobody here has heard of.

Pods are known by what they look like, not by the object's kind: a list of containers, or what only a pod can have.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workloads.values import Plain, as_map, as_maps, each_object, kind_and_part

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers", "sidecars")
ONE_CONTAINER = ("container", "script")
HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
MARKS = frozenset({*CONTAINER_LISTS, *ONE_CONTAINER, *HOST_NAMESPACES})
"""Keys that tell of a pod. How some custom kinds write one container or those beside it is among them."""
MAX_DEPTH = 40
"""Levels of an object that are looked through."""
_BESIDE = frozenset({"metadata", "status"})
_ON_ONE_NODE = frozenset(
    {
        "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job", "CronJob", "Pod",
        "PodTemplate", "ScaledJob",
    }
)  # fmt: skip
"""Kinds whose replicas are one pod each."""


@dataclass(frozen=True, slots=True)
class PodPlace:
    """One pod that an object tells of."""

    item: Plain
    """The object; of a list one member."""
    kind: str
    spec: Plain
    metadata: Plain = field(default_factory=dict)
    """The pod's own, where a template has some."""
    is_part: bool = False
    """A patch: what it leaves out stands elsewhere."""
    nodes: int | None = None
    """That one replica spans; ``None`` = not known."""


def pod_places(item: Plain) -> Iterator[PodPlace]:
    """Every pod that an object, or a list of objects, tells of."""
    for found in each_object(item):
        kind, is_part = kind_and_part(found)
        body = {key: value for key, value in found.items() if key not in _BESIDE}
        for spec, head in _specs(body, as_map(found.get("metadata")), 0):
            yield PodPlace(found, kind, spec, head, is_part, _nodes(kind, found))


def _specs(value: Any, head: Plain, depth: int) -> Iterator[tuple[Plain, Plain]]:  # noqa: ANN401 - any JSON value
    """Pods below a value, each with the metadata that stands beside it."""
    if depth > MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        yield from _specs_of(value, head, depth)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _specs(inner, {}, depth + 1)


def _specs_of(value: Plain, head: Plain, depth: int) -> Iterator[tuple[Plain, Plain]]:
    if _is_pod(value):
        yield value, head
        return
    own = as_map(value.get("metadata"))
    for key in ONE_CONTAINER:
        if _is_container(value.get(key)):
            yield {**value, "containers": [value[key]]}, own
    for key in (key for key in value if key not in _BESIDE):
        yield from _specs(value[key], own or head, depth + 1)


def _is_pod(value: Plain) -> bool:
    has_containers = any(_is_container(item) for key in CONTAINER_LISTS for item in as_maps(value.get(key)))
    mounts_node = any("hostPath" in volume for volume in as_maps(value.get("volumes")))
    return has_containers or mounts_node or any(key in value for key in HOST_NAMESPACES)


def _is_container(value: object) -> bool:
    return isinstance(value, Mapping) and ("name" in value or "image" in value)


def _nodes(kind: str, item: Plain) -> int | None:
    if kind == "LeaderWorkerSet":
        size = as_map(as_map(item.get("spec")).get("leaderWorkerTemplate")).get("size", 1)
        return int(size) if isinstance(size, int | float) else None
    return 1 if kind in _ON_ONE_NODE else None
