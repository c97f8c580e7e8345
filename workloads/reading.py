"""What scales, rendered or written by anybody, as the values that the rules of the cloud judge."""

from collections.abc import Sequence

from fleet.cloud.scaling import AVERAGE_VALUE, MOST, STATIC, Claim, Scaler, Trigger, Workload
from fleet.engine import MetricsDialect
from workloads.values import Plain, as_map, as_maps, as_whole, kind_and_part, object_id

SCALED_OBJECT = "ScaledObject"
SCALERS = (SCALED_OBJECT, "HorizontalPodAutoscaler")
"""Kinds that own the replicas of something."""
KEDA_SCALERS = (SCALED_OBJECT, "ScaledJob")
"""Kinds that have triggers."""
_REPLICATED = ("Deployment", "StatefulSet", "ReplicaSet")
_COUNTS = ("minReplicaCount", "maxReplicaCount", "idleReplicaCount")


def scaler(item: Plain, dialects: Sequence[MetricsDialect] = ()) -> Scaler | None:
    """A scaler of KEDA as a value; ``None`` for every other kind."""
    kind, is_part = kind_and_part(item)
    if kind not in KEDA_SCALERS:
        return None
    spec = as_map(item.get("spec"))
    fallback = spec.get("fallback")
    counts = {key: spec.get(key) for key in _COUNTS} | {"fallback.replicas": as_map(fallback).get("replicas")}
    read = {key: as_whole(value) for key, value in counts.items()}
    return Scaler(
        name=str(as_map(item.get("metadata")).get("name") or ""),
        triggers=tuple(_trigger(index, found) for index, found in enumerate(as_maps(spec.get("triggers")))),
        smallest=read["minReplicaCount"] or 0,
        largest=MOST if read["maxReplicaCount"] is None else read["maxReplicaCount"],
        idle=read["idleReplicaCount"],
        fallback_replicas=None if fallback is None else read["fallback.replicas"] or 0,
        fallback_behaviour=str(as_map(fallback).get("behavior") or STATIC),
        hpa_name=as_map(as_map(spec.get("advanced")).get("horizontalPodAutoscalerConfig")).get("name") or None,
        dialects=tuple(dialects),
        unreadable=tuple(f"{key} {counts[key]!r}" for key in counts if counts[key] is not None and read[key] is None),
        has_triggers_alone=is_part or kind != SCALED_OBJECT,
    )


def claim(item: Plain) -> Claim | None:
    """Whose replicas a scaler owns; ``None`` for what is no scaler."""
    kind, _ = kind_and_part(item)
    target = as_map(as_map(item.get("spec")).get("scaleTargetRef"))
    if kind not in SCALERS or not target:
        return None
    workload = object_id(str(target.get("kind") or "Deployment"), item, name=str(target.get("name") or ""))
    return Claim(object_id(kind, item), workload)


def workload(item: Plain, *, ignores_replicas: bool = False) -> Workload | None:
    """What has replicas, of any kind, as a value; ``None`` for what has none."""
    kind, _ = kind_and_part(item)
    replicas = as_map(item.get("spec")).get("replicas")
    if kind not in _REPLICATED and replicas is None:
        return None
    whole = as_whole(replicas)
    return Workload(object_id(kind, item), whole if whole is not None else replicas, ignores_replicas)


def _trigger(index: int, item: Plain) -> Trigger:
    said = as_map(item.get("metadata"))
    return Trigger(
        name=str(item.get("name") or index),
        type=str(item.get("type") or ""),
        metric_type=str(item.get("metricType") or AVERAGE_VALUE),
        query=str(said.get("query") or ""),
        ignores_null=said.get("ignoreNullValues") is not False and str(said.get("ignoreNullValues")).strip() != "false",
        metric_name=None if said.get("metricName") is None else str(said["metricName"]),
    )
