"""The ScaledObject of a pinned manifest: what makes replicas, and what must not.

Averages are compared as ``Value`` and sums as ``AverageValue``; a query gives one series; nothing that is missing reads
as zero while engines run; a lost Prometheus keeps what is there. Zero replicas have no metrics, so only the gateway's
queue can wake them. Why: docs/explanation/workloads.md; the rules: `fleet.cloud.scaling`.
"""

import json
from collections.abc import Iterator

from fleet.cloud.labels import DEPLOYMENT_LABEL
from fleet.cloud.scaling import GATEWAY_METRIC
from fleet.engine import EngineCatalogue, MetricsDialect
from fleet.manifest import PinnedManifest
from fleet.spec import Scaling
from workloads.ground import RenderGround
from workloads.names import KubernetesObject, metadata, scaler_name
from workloads.schedule import schedule_triggers

KV_USAGE = 0.7
"""Mean share of the KV cache above which a replica more is wanted."""
WAITING_PER_REPLICA = 3
"""Requests in a queue, the engines' own or the gateway's, above which a replica more is wanted."""
POLLING_SECONDS = 15
COOLDOWN_SECONDS = 300
FAILURES_BEFORE_FALLBACK = 3
_BEHAVIOUR: KubernetesObject = {
    "scaleDown": {
        "stabilizationWindowSeconds": 300,
        "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}],
    },
    "scaleUp": {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 60}]},
}
_POD_LABEL = DEPLOYMENT_LABEL.replace(".", "_").replace("/", "_").replace("-", "_")
"""What scrapers make of a pod's label."""


def floor_of(scaling: Scaling) -> int:
    """Replicas while somebody asks; ``idle: never`` keeps at least one when nobody does."""
    return max(1, scaling.min)


def is_scaled(scaling: Scaling) -> bool:
    """Whether anything but the manifest decides the number of replicas."""
    return scaling.max > floor_of(scaling) or scaling.idle == "scale-to-zero" or bool(scaling.schedule)


def scaled_object(pinned: PinnedManifest, catalogue: EngineCatalogue, ground: RenderGround) -> KubernetesObject:
    """The ScaledObject; meant for a manifest that `is_scaled`.

    Raises:
        RenderRefused: a schedule that KEDA can't keep.
    """
    head = metadata(pinned, ground.namespace, name=scaler_name(pinned.name))
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": head,
        "spec": scaler_spec(pinned, catalogue, ground),
    }


def scaler_spec(pinned: PinnedManifest, catalogue: EngineCatalogue, ground: RenderGround) -> KubernetesObject:
    """What the ScaledObject says; raises as `scaled_object`."""
    scaling = pinned.spec.scaling
    floor = floor_of(scaling)
    sleeps = scaling.idle == "scale-to-zero"
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": pinned.name},
        "pollingInterval": POLLING_SECONDS,
        "cooldownPeriod": COOLDOWN_SECONDS,
        **({"idleReplicaCount": 0} if sleeps else {}),
        "minReplicaCount": floor,
        "maxReplicaCount": max(floor, scaling.max),
        "fallback": {
            "failureThreshold": FAILURES_BEFORE_FALLBACK,
            "replicas": floor,
            "behavior": "currentReplicasIfHigher",
        },
        "advanced": {
            "restoreToOriginalReplicaCount": False,
            "horizontalPodAutoscalerConfig": {"behavior": _BEHAVIOUR},
        },
        "triggers": [*_engine_triggers(pinned, catalogue, ground), *schedule_triggers(pinned)],
    }


def _engine_triggers(
    pinned: PinnedManifest, catalogue: EngineCatalogue, ground: RenderGround
) -> Iterator[KubernetesObject]:
    engine = pinned.spec.engine
    batch = pinned.spec.batch
    waiting = f"sum({GATEWAY_METRIC}{{model={_quoted(pinned.served_name)}}})"
    if engine is not None and engine.name is not None and engine.version is not None:
        names = catalogue.metrics(engine.name, engine.version, engine.front)
        pods = f'namespace="{ground.namespace}",{_POD_LABEL}="{pinned.name}"'
        zero = _zero_while_none_runs(pods, waiting) if pinned.spec.scaling.idle == "scale-to-zero" else ""
        yield from _of_metrics(names, pods, zero, ground, batch.max_num_seqs if batch else None)
    yield _prometheus("gateway", "AverageValue", waiting, WAITING_PER_REPLICA, ground)


def _of_metrics(
    names: MetricsDialect, pods: str, zero: str, ground: RenderGround, most_running: int | None
) -> Iterator[KubernetesObject]:
    """The cache, the engines' queue, and for those that may sleep also the running requests: they keep it awake."""
    if names.kv_usage is not None:
        series = _series(names.kv_usage, pods)
        yield _prometheus("kv-cache", "Value", f"avg(max_over_time({series}[1m])){zero}", KV_USAGE, ground)
    if names.waiting is not None:
        query = f"sum({_series(names.waiting, pods)}){zero}"
        yield _prometheus("engine-queue", "AverageValue", query, WAITING_PER_REPLICA, ground)
    if zero and names.running is not None and most_running is not None:
        query = f"sum({_series(names.running, pods)}){zero}"
        yield _prometheus("running", "AverageValue", query, most_running, ground)


def _zero_while_none_runs(pods: str, waiting: str) -> str:
    """Nothing runs and the gateway answers: then a missing metric is zero. While an engine is up, it is an error."""
    return f" or (0 * {waiting} unless on() count(up{{{pods}}} == 1))"


def _prometheus(name: str, metric_type: str, query: str, threshold: float, ground: RenderGround) -> KubernetesObject:
    return {
        "type": "prometheus",
        "name": name,
        "metricType": metric_type,
        "metadata": {
            "serverAddress": ground.prometheus_url,
            "query": query,
            "threshold": f"{threshold:g}",
            "activationThreshold": "0",
            "ignoreNullValues": "false",
        },
    }


def _series(metric: str, pods: str) -> str:
    """A metric of these pods; some dialects name a metric with labels of its own."""
    return f"{metric.removesuffix('}')},{pods}}}" if metric.endswith("}") else f"{metric}{{{pods}}}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
