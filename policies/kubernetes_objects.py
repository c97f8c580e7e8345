"""Kubernetes objects of a program, as the API server will get them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulumi_policy.proxy import UnknownValueError

from policies.adapter import Props, Seen, Stack, TypesUnder
from policies.reading import plain
from workloads import KubernetesObject
from workloads.pod_places import CONTAINER_LISTS, MARKS, MAX_DEPTH, ONE_CONTAINER, PodPlace, pod_places

PREFIX = "kubernetes:"
DEFINITION_KIND = "apiextensions.k8s.io/CustomResourceDefinition"
BUNDLES = (
    "kubernetes:helm.sh/v3:Chart",
    "kubernetes:helm.sh/v4:Chart",
    "kubernetes:yaml:ConfigFile",
    "kubernetes:yaml:ConfigGroup",
    "kubernetes:yaml/v2:ConfigFile",
    "kubernetes:yaml/v2:ConfigGroup",
    "kubernetes:kustomize:Directory",
    "kubernetes:kustomize/v2:Directory",
)
"""Components whose objects are applied as one."""
_NO_OBJECTS = frozenset({"helm.sh", "yaml", "kustomize"})
"""What makes objects and is none."""
_NO_PODS = frozenset(
    {
        "admissionregistration.k8s.io", "apiextensions.k8s.io", "constraints.gatekeeper.sh", "kyverno.io", "policy",
        "rbac.authorization.k8s.io", "storage.k8s.io", "templates.gatekeeper.sh",
    }
)  # fmt: skip
"""Groups whose objects talk about pods and make none."""
_CORE_WITH_PODS = frozenset({"Pod", "PodTemplate", "ReplicationController"})
_OFTEN_PODS = frozenset({"apps", "batch"})
"""Groups whose objects all make pods, so that one which is not known is not judged yet."""
_PLACES = frozenset({"spec", "template", "items"})
"""Keys behind which pods may stand while their value is unknown."""
_PLACES_OF_CONTAINERS = _PLACES.union(CONTAINER_LISTS, ONE_CONTAINER)


EVERY_TYPE = TypesUnder(PREFIX)
"""Those of custom resources too."""


def all_objects(stack: Stack) -> Iterator[Seen]:
    """The Kubernetes objects of a stack."""
    return (seen for seen in stack.among(EVERY_TYPE) if group_of(seen) not in _NO_OBJECTS)


def object_of(seen: Seen) -> KubernetesObject:
    """The object, read to its last value: one that is unknown somewhere is not judged yet."""
    return {**head_of(seen), **{str(key): plain(value) for key, value in seen.props.items()}}


def known_pods(seen: Seen) -> Iterator[PodPlace]:
    """The pods of which an object tells; a value of a container that is not known is the error that says so."""
    return pod_places({**head_of(seen), **_with_errors(seen.props)})


def head_of(seen: Seen) -> KubernetesObject:
    """Version and kind, as its type says them."""
    version, _, kind = seen.type.removeprefix(PREFIX).rpartition(":")
    return {"apiVersion": version.removeprefix("core/"), "kind": kind}


def kind_of(seen: Seen) -> str:
    """Its kind as ``group/Kind``; the core group has no name."""
    kind = seen.type.rpartition(":")[2]
    return f"{group_of(seen)}/{kind}"


def stem_of(seen: Seen) -> str:
    """Its kind, of a patch or a list the kind of its object."""
    return _stem(seen.type.rpartition(":")[2])


def group_of(seen: Seen) -> str:
    """The group of its API; of the core group nothing."""
    version = seen.type.removeprefix(PREFIX).rpartition(":")[0]
    return "" if version.partition("/")[0] == "core" else version.partition("/")[0]


def holds_pods(seen: Seen) -> bool:
    """Whether pods stand in it, found without reading more than needs be."""
    group = group_of(seen)
    if group in _NO_OBJECTS | _NO_PODS:
        return False
    if group in _OFTEN_PODS:
        return True
    kind = stem_of(seen)
    if not group:
        return kind in _CORE_WITH_PODS or (kind == "" and _has_marks(seen.props, 0))
    return _has_marks(seen.props, 0)


def _stem(kind: str) -> str:
    for ending in ("Patch", "List"):
        kind = kind.removesuffix(ending)
    return kind


def _has_marks(value: object, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, Mapping):
        return any(key in MARKS for key in value) or any(_has_marks(item, depth + 1) for item in _known(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return any(_has_marks(item, depth + 1) for item in value)
    return False


def _known(value: Props) -> Iterator[object]:
    """The values that are known; an unknown one in the place of a pod raises `UnknownValueError`."""
    return (item for _, item in _items(value, _PLACES) if not isinstance(item, UnknownValueError))


def _with_errors(value: Any, stands_at: str = "") -> Any:  # noqa: ANN401 any JSON value
    """A value without the framework's proxies, with the error in place of what is not known."""
    if isinstance(value, Mapping):
        return {str(key): _with_errors(item, key) for key, item in _items(value, _PLACES_OF_CONTAINERS)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        is_place = stands_at in _PLACES_OF_CONTAINERS
        return [_with_errors(_item(value, index, is_place=is_place)) for index in range(len(value))]
    return value


def _items(value: Props, places: frozenset[str]) -> Iterator[tuple[str, object]]:
    """Keys and values, but for what stands beside pods; an unknown value in some places raises its error."""
    for key in value:
        item = _item(value, key, is_place=key in places)
        if key not in ("metadata", "status"):
            yield key, item


def _item(holder: Any, key: Any, *, is_place: bool) -> Any:  # noqa: ANN401 any JSON value
    """A value; of one that is not known the error, or where pods may stand a raised one."""
    try:
        return holder[key]
    except UnknownValueError as error:
        if is_place:
            raise
        return error
