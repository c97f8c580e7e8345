"""Pods of an object, rendered or written by anybody, as the values that the rules of the cloud judge."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.cloud.labels import ISOLATION_LABEL, POOL_LABEL, PREFIX, SHARING_LABEL
from fleet.cloud.objects import PodContainer, PodOwner
from fleet.hardware import gpu, gpu_models, instance_types
from fleet.node_pools import NodePool
from fleet.sharing import SharingWay
from workloads.pod_places import CONTAINER_LISTS, HOST_NAMESPACES, PodPlace, pod_places
from workloads.values import Plain, as_flag, as_list, as_map, as_maps, as_whole, object_id

_INSTANCE_LABEL = "node.kubernetes.io/instance-type"
_GPU_LABELS = (f"{PREFIX}/gpu", "nvidia.com/gpu.product")
_SHARED = "shared"
"""The isolation of who asks for none; every other word is taken for more."""
_BLAMELESS: Plain = {
    "resources": {"requests": {"memory": "1"}, "limits": {"memory": "1"}},
    "startupProbe": {"exec": {}},
    "readinessProbe": {"exec": {}},
    "securityContext": {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    },
}
_BLAMELESS_RIGHTS: Plain = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
"""What a patch that says nothing of these things leaves to the object that it is for."""


def pod_owners(item: Plain, pools: Sequence[NodePool] = ()) -> tuple[PodOwner, ...]:
    """Everything in an object that makes pods, as values. ``pools`` say which GPUs its nodes have."""
    return tuple(_owner(place, pools) for place in pod_places(item))


def host_path(item: Plain) -> str | None:
    """The path of a node that a volume of the cluster is; ``None`` = it is none."""
    spec = as_map(item.get("spec"))
    return str(as_map(spec["hostPath"]).get("path") or "") if "hostPath" in spec else None


def texts_of(values: object) -> dict[str, str]:
    """The data of a ConfigMap."""
    return {str(key): str(value) for key, value in as_map(values).items()}


def _owner(place: PodPlace, pools: Sequence[NodePool]) -> PodOwner:
    known = as_map(place.metadata.get("annotations")) | as_map(place.metadata.get("labels"))
    head = as_map(place.item.get("metadata"))
    wanted = (as_map(head.get("labels")).get(ISOLATION_LABEL), known.get(ISOLATION_LABEL))
    sharing = str(known.get(SHARING_LABEL)).strip().lower()
    volumes = as_maps(place.spec.get("volumes"))
    named = _named_gpus(place.spec, pools)
    return PodOwner(
        id=object_id(place.kind, place.item),
        containers=tuple(_containers(place)),
        host_paths=tuple(
            str(as_map(item["hostPath"]).get("path") or "a path") for item in volumes if "hostPath" in item
        ),
        host_namespaces=tuple(
            key for key in HOST_NAMESPACES if place.spec.get(key) is not None and as_flag(place.spec[key]) is not False
        ),
        image_volumes=tuple(str(as_map(item["image"]).get("reference") or "") for item in volumes if "image" in item),
        nodes=place.nodes,
        pools=tuple(_node_labels(place.spec).get(POOL_LABEL, ())),
        gpus=tuple(gpu(name) for name in named),
        any_gpus=() if named else tuple(pool.gpu for pool in pools),
        sharing=SharingWay(sharing) if sharing in tuple(SharingWay) else None,
        needs_isolation=any(word is not None and str(word).strip().lower() != _SHARED for word in wanted),
    )


def _containers(place: PodPlace) -> Iterator[PodContainer]:
    rights = as_map(place.spec.get("securityContext"))
    if place.is_part:
        rights = {**_BLAMELESS_RIGHTS, **rights}
    whole = as_map(place.spec.get("resources"))
    for key in CONTAINER_LISTS:
        for item in as_maps(place.spec.get(key)):
            is_first = key == "initContainers" and item.get("restartPolicy") != "Always"
            stated = _completed(item, place, key)
            yield _container(stated, rights, whole, is_initial=is_first)


def _completed(item: Plain, place: PodPlace, key: str) -> Plain:
    """A container with what a patch leaves to its object, and what one that looks into a running pod can't have."""
    if place.is_part:
        return _below(item, {"image": None, **_BLAMELESS})
    if key == "ephemeralContainers":
        return _below(item, {name: value for name, value in _BLAMELESS.items() if name != "securityContext"})
    return item


def _below(stated: Plain, others: Plain) -> dict[str, Any]:
    """What is stated, and beneath it what is not."""
    found = dict(others)
    for key, value in stated.items():
        is_both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = _below(value, found[key]) if is_both else value
    return found


def _container(item: Plain, pod_rights: Plain, whole: Plain, *, is_initial: bool) -> PodContainer:
    own = as_map(item.get("securityContext"))
    rights = {**pod_rights, **{key: value for key, value in own.items() if value is not None}}
    resources = as_map(item.get("resources"))
    capabilities = as_map(own.get("capabilities"))
    image = item.get("image", "")
    return PodContainer(
        name=str(item.get("name") or ""),
        image=None if image is None and "image" in item else str(image),
        requests=_with_memory(resources, whole, "requests"),
        limits=_with_memory(resources, whole, "limits"),
        has_startup_probe=bool(item.get("startupProbe")),
        has_readiness_probe=bool(item.get("readinessProbe")),
        is_privileged=_is_on(own.get("privileged")) or _is_on(as_map(own.get("windowsOptions")).get("hostProcess")),
        may_gain_rights=as_flag(own.get("allowPrivilegeEscalation")) is not False,
        drops_all_capabilities="ALL" in as_list(capabilities.get("drop")),
        added_capabilities=tuple(str(name).removeprefix("CAP_") for name in as_list(capabilities.get("add"))),
        has_unmasked_proc=own.get("procMount") not in (None, "", "Default"),
        host_ports=tuple(str(port["hostPort"]) for port in as_maps(item.get("ports")) if port.get("hostPort")),
        is_not_root=as_flag(rights.get("runAsNonRoot")) is True and not _is_root(rights.get("runAsUser")),
        has_seccomp=as_map(rights.get("seccompProfile")).get("type") in ("RuntimeDefault", "Localhost"),
        has_read_only_root=as_flag(own.get("readOnlyRootFilesystem")) is True,
        environment={str(found.get("name")): str(found["value"]) for found in _plain_variables(item)},
        words=tuple(str(word) for key in ("command", "args") for word in as_list(item.get(key))),
        is_initial=is_initial,
    )


def _plain_variables(item: Plain) -> list[dict[str, Any]]:
    return [found for found in as_maps(item.get("env")) if found.get("value")]


def _with_memory(resources: Plain, whole: Plain, key: str) -> dict[str, Any]:
    """What a container asks for; a pod's own limit of memory holds for the containers in it."""
    pod = as_map(whole.get(key))
    return {**({"memory": pod["memory"]} if "memory" in pod else {}), **as_map(resources.get(key))}


def _is_on(value: object) -> bool:
    """Whether something dangerous is on; what can't be read counts as on."""
    return value is not None and as_flag(value) is not False


def _is_root(user: object) -> bool:
    """Whether a user is root; one that can't be read may be."""
    number = as_whole(int(user) if isinstance(user, str) and user.strip().isdecimal() else user)
    return user is not None and not number


def _named_gpus(spec: Plain, pools: Sequence[NodePool]) -> list[str]:
    """The GPUs of the nodes that a pod names: by pool, instance type, or the GPU itself."""
    named = _node_labels(spec)
    by_name = {pool.name: pool.instance_type for pool in pools}
    types = [by_name[name] for name in named.get(POOL_LABEL, ()) if name in by_name]
    known = instance_types()
    found = {known[item].gpu for item in (*types, *named.get(_INSTANCE_LABEL, ())) if item in known}
    stated = (model for label in _GPU_LABELS for text in named.get(label, ()) for model in _models_called(text))
    return sorted({*found, *stated})


def _models_called(text: str) -> list[str]:
    """The model in a product's name, as in ``NVIDIA-H100-80GB-HBM3-SHARED``."""
    words = f"-{text.upper()}-"
    found = [name for name in gpu_models() if f"-{name.upper()}-" in words]
    return [name for name in found if not any(name != other and name in other for other in found)]


def _node_labels(spec: Plain) -> dict[str, list[str]]:
    found = {str(key): [str(value)] for key, value in as_map(spec.get("nodeSelector")).items()}
    affinity = as_map(as_map(spec.get("affinity")).get("nodeAffinity"))
    required = as_map(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in as_maps(required.get("nodeSelectorTerms")):
        for wanted in as_maps(term.get("matchExpressions")):
            if wanted.get("operator") == "In":
                found.setdefault(str(wanted.get("key")), []).extend(map(str, as_list(wanted.get("values"))))
    return found
