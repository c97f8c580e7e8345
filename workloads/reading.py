"""Kubernetes objects, rendered or written by anybody, as the values that the rules of the cloud judge."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fleet.cloud.labels import ISOLATION_LABEL, POOL_LABEL, SHARING_LABEL
from fleet.cloud.objects import PodContainer, PodOwner
from fleet.cloud.scaling import AVERAGE_VALUE, Claim, Scaler, Trigger, Workload
from fleet.engine import MetricsDialect
from fleet.hardware import GpuModel, gpu, instance_types
from fleet.node_pools import NodePool
from fleet.sharing import SharingWay

Plain = Mapping[str, Any]
POD_OWNERS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob", "Pod")
SCALERS = ("ScaledObject", "HorizontalPodAutoscaler")
_INSTANCE_LABEL = "node.kubernetes.io/instance-type"


def object_id(kind: str, item: Plain, *, name: str = "") -> str:
    """``namespace/Kind/name`` of an object, or of one beside it."""
    head = _map(item.get("metadata"))
    return f"{head.get('namespace') or 'default'}/{kind}/{name or head.get('name') or ''}"


def pod_owner(item: Plain, pools: Sequence[NodePool] = ()) -> PodOwner | None:
    """What makes pods, as a value; ``None`` for every other kind. ``pools`` say which GPUs its nodes have."""
    kind = str(item.get("kind") or "")
    if kind not in POD_OWNERS:
        return None
    pod = _pod(kind, item)
    spec = _map(pod.get("spec"))
    known = _map(_map(pod.get("metadata")).get("annotations")) | _map(_map(pod.get("metadata")).get("labels"))
    own = _map(_map(item.get("metadata")).get("labels"))
    sharing = known.get(SHARING_LABEL)
    return PodOwner(
        id=object_id(kind, item),
        containers=tuple(_containers(spec)),
        host_paths=tuple(
            str(_map(volume["hostPath"]).get("path")) for volume in _maps(spec.get("volumes")) if volume.get("hostPath")
        ),
        host_namespaces=tuple(key for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)),
        gpus=tuple(_gpus(spec, pools)),
        sharing=SharingWay(sharing) if sharing in tuple(SharingWay) else None,
        needs_isolation="hardware" in (own.get(ISOLATION_LABEL), known.get(ISOLATION_LABEL)),
    )


def scaler(item: Plain, dialects: Sequence[MetricsDialect] = ()) -> Scaler | None:
    """A ScaledObject as a value; ``None`` for every other kind."""
    if item.get("kind") != "ScaledObject":
        return None
    spec = _map(item.get("spec"))
    fallback = spec.get("fallback")
    return Scaler(
        name=str(_map(item.get("metadata")).get("name") or ""),
        triggers=tuple(_trigger(index, found) for index, found in enumerate(_maps(spec.get("triggers")))),
        smallest=int(spec.get("minReplicaCount") or 0),
        largest=int(spec.get("maxReplicaCount") or 100),
        idle=None if spec.get("idleReplicaCount") is None else int(spec["idleReplicaCount"]),
        fallback_replicas=None if fallback is None else int(_map(fallback).get("replicas") or 0),
        hpa_name=_map(_map(spec.get("advanced")).get("horizontalPodAutoscalerConfig")).get("name") or None,
        dialects=tuple(dialects),
    )


def claim(item: Plain) -> Claim | None:
    """Whose replicas a scaler owns; ``None`` for what is no scaler."""
    kind = str(item.get("kind") or "")
    if kind not in SCALERS:
        return None
    target = _map(_map(item.get("spec")).get("scaleTargetRef"))
    workload = object_id(str(target.get("kind") or "Deployment"), item, name=str(target.get("name") or ""))
    return Claim(object_id(kind, item), workload)


def workload(item: Plain, *, ignores_replicas: bool = False) -> Workload | None:
    """What has replicas, as a value; ``None`` for what has none."""
    kind = str(item.get("kind") or "")
    if kind not in ("Deployment", "StatefulSet", "ReplicaSet"):
        return None
    replicas = _map(item.get("spec")).get("replicas")
    return Workload(object_id(kind, item), None if replicas is None else int(replicas), ignores_replicas)


def _pod(kind: str, item: Plain) -> Plain:
    if kind == "Pod":
        return item
    spec = _map(item.get("spec"))
    if kind == "CronJob":
        spec = _map(_map(spec.get("jobTemplate")).get("spec"))
    return _map(spec.get("template"))


def _containers(spec: Plain) -> Iterator[PodContainer]:
    rights = _map(spec.get("securityContext"))
    for key in ("initContainers", "containers"):
        for item in _maps(spec.get(key)):
            yield _container(item, rights, is_initial=key == "initContainers")


def _container(item: Plain, pod_rights: Plain, *, is_initial: bool) -> PodContainer:
    own = _map(item.get("securityContext"))
    rights = {**pod_rights, **own}
    resources = _map(item.get("resources"))
    return PodContainer(
        name=str(item.get("name") or ""),
        image=str(item.get("image") or ""),
        requests=_map(resources.get("requests")),
        limits=_map(resources.get("limits")),
        has_startup_probe=bool(item.get("startupProbe")),
        has_readiness_probe=bool(item.get("readinessProbe")),
        is_privileged=bool(own.get("privileged")),
        may_gain_rights=own.get("allowPrivilegeEscalation") is not False,
        drops_all_capabilities="ALL" in _list(_map(own.get("capabilities")).get("drop")),
        is_not_root=bool(rights.get("runAsNonRoot")) and rights.get("runAsUser") != 0,
        has_seccomp=_map(rights.get("seccompProfile")).get("type") in ("RuntimeDefault", "Localhost"),
        has_read_only_root=bool(own.get("readOnlyRootFilesystem")),
        plain_environment=tuple(str(found.get("name")) for found in _maps(item.get("env")) if found.get("value")),
        is_initial=is_initial,
    )


def _gpus(spec: Plain, pools: Sequence[NodePool]) -> Iterator[GpuModel]:
    """The GPUs of the nodes that a pod names, by pool or by instance type."""
    named = _node_labels(spec)
    by_name = {pool.name: pool.instance_type for pool in pools}
    types = [by_name[name] for name in named.get(POOL_LABEL, ()) if name in by_name]
    known = instance_types()
    found = {known[item].gpu for item in (*types, *named.get(_INSTANCE_LABEL, ())) if item in known}
    return (gpu(name) for name in sorted(found))


def _node_labels(spec: Plain) -> dict[str, list[str]]:
    found = {str(key): [str(value)] for key, value in _map(spec.get("nodeSelector")).items()}
    affinity = _map(_map(spec.get("affinity")).get("nodeAffinity"))
    required = _map(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in _maps(required.get("nodeSelectorTerms")):
        for wanted in _maps(term.get("matchExpressions")):
            if wanted.get("operator") == "In":
                found.setdefault(str(wanted.get("key")), []).extend(map(str, _list(wanted.get("values"))))
    return found


def _trigger(index: int, item: Plain) -> Trigger:
    said = _map(item.get("metadata"))
    return Trigger(
        name=str(item.get("name") or index),
        type=str(item.get("type") or ""),
        metric_type=str(item.get("metricType") or AVERAGE_VALUE),
        query=str(said.get("query") or ""),
        ignores_null=str(said.get("ignoreNullValues", "true")).lower() != "false",
        metric_name=None if said.get("metricName") is None else str(said["metricName"]),
    )


def _map(value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever stands in an object
    return dict(value) if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:  # noqa: ANN401 - whatever stands in an object
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else []


def _maps(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - whatever stands in an object
    return [dict(item) for item in _list(value) if isinstance(item, Mapping)]
