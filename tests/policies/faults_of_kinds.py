"""The same mistakes in objects of every kind that holds pods or triggers, and what only looks like one."""

import copy
from typing import Any

from tests.infra.sdk_shapes import UNKNOWN
from tests.policies.fault import Change, add, all_of, chart, put
from tests.policies.faults_of_nodes import PLUGIN
from tests.policies.faults_of_workloads import DEPLOYMENT, SCALER, alone, deployed, pod, scaled, trigger
from tests.workloads.invented import image

POD = "spec.template.spec"
ENGINE = f"{POD}.containers.0"
_HEAD = {"name": "one", "namespace": "inference"}
_GOOD: dict[str, Any] = {
    "name": "one",
    "image": image("vllm"),
    "resources": {"limits": {"memory": "1Gi"}},
    "securityContext": {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True,
        "runAsNonRoot": True, "runAsUser": 7, "seccompProfile": {"type": "RuntimeDefault"},
    },
}  # fmt: skip
BAD = {**_GOOD, "image": "busybox:latest"}
AUTOSCALER = {**_GOOD, "image": f"invented.invalid/cluster-autoscaler@sha256:{'1' * 64}"}
ROW = tuple[str, str | None, Change]


def holding(type_: str, spec: dict[str, Any], **others: Any) -> Change:
    """An object of a kind."""
    return add(f"kubernetes:{type_}", "one", {"metadata": _HEAD, "spec": spec, **others})


def template(container: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"template": {"spec": {"containers": [container], **others}}}


def listed(type_: str, *items: dict[str, Any]) -> Change:
    return add(f"kubernetes:{type_}", "one", {"items": list(items)})


def kinds(container: dict[str, Any]) -> dict[str, Change]:
    """A container in every kind of object that can hold one."""
    spec = template(container)
    member = {"metadata": _HEAD, "spec": spec}
    other = {**copy.deepcopy(_GOOD), "name": "other"}
    return {
        "Pod": holding("core/v1:Pod", spec["template"]["spec"]),
        "ReplicaSet": holding("apps/v1:ReplicaSet", spec),
        "StatefulSet": holding("apps/v1:StatefulSet", spec),
        "ReplicationController": holding("core/v1:ReplicationController", spec),
        "PodTemplate": add("kubernetes:core/v1:PodTemplate", "one", {"metadata": _HEAD, **spec}),
        "DeploymentPatch": holding("apps/v1:DeploymentPatch", spec),
        "old Deployment": holding("extensions/v1beta1:Deployment", spec),
        "beta StatefulSet": holding("apps/v1beta1:StatefulSet", spec),
        "beta CronJob": holding("batch/v1beta1:CronJob", {"jobTemplate": {"spec": spec}}),
        "DeploymentList": listed("apps/v1:DeploymentList", member),
        "List": listed("core/v1:List", {"apiVersion": "apps/v1", "kind": "Deployment", **member}),
        "ScaledJob": holding("keda.sh/v1alpha1:ScaledJob", {"jobTargetRef": spec, "triggers": []}),
        "LeaderWorkerSet": holding("leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", {
            "leaderWorkerTemplate": {"workerTemplate": spec["template"], "size": 2}}),
        "RayCluster": holding("ray.io/v1:RayCluster", {
            "headGroupSpec": template(other), "workerGroupSpecs": [template(other), spec]}),
        "Knative Service": holding("serving.knative.dev/v1:Service", spec),
        "Argo Workflow": holding("argoproj.io/v1alpha1:Workflow", {
            "templates": [{"name": "a", "container": container}]}),
        "a container that looks in": holding("core/v1:Pod", {
            "containers": [other], "ephemeralContainers": [container]}),
        "a kind that nobody knows": holding("acme.invalid/v7:Thing", {"deep": [{"er": {"podSpec": spec["template"]}}]}),
    }  # fmt: skip


def odd_replicas() -> dict[str, Change]:
    """Replicas in words, in what nobody scales."""
    member = {"metadata": _HEAD, "spec": {**template(_GOOD), "replicas": "two"}}
    return {
        "Deployment": all_of(deployed, put(DEPLOYMENT, "spec.replicas", "two")),
        "StatefulSet": holding("apps/v1:StatefulSet", member["spec"]),
        "a patch": holding("apps/v1:DeploymentPatch", {"replicas": ["two"]}),
        "ReplicationController": holding("core/v1:ReplicationController", member["spec"]),
        "DeploymentList": listed("apps/v1:DeploymentList", member),
        "List": listed("core/v1:List", {"apiVersion": "apps/v1", "kind": "Deployment", **member}),
    }


def _engine(path: str, value: Any) -> Change:
    return pod(f"{ENGINE}.{path}", value)


def _query(text: str, metric_type: str = "AverageValue") -> Change:
    return all_of(
        trigger("spec.triggers.1.metadata.query", text), put(SCALER, "spec.triggers.1.metricType", metric_type)
    )


def _sleeping(query: str) -> Change:
    """A scaler that may go to zero, whose gateway trigger asks something else."""
    return all_of(trigger("spec.minReplicaCount", 0), put(SCALER, "spec.triggers.2.metadata.query", query))


_GW = "enginehouse_gateway_requests_waiting"
_RIGHTS = "securityContext"
_RENAMED = (
    "version: v1\nsharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
)
_CHART = add("kubernetes:helm.sh/v4:Chart", "keda", {"chart": "keda"})
_CRD = {"metadata": {"name": "x"}, "spec": {"group": "keda.sh", "names": {"kind": "ScaledObject"}}}
_SPEC = {"scaleTargetRef": {"name": "chat"}, "minReplicas": 1, "maxReplicas": 3}
PODS: tuple[ROW, ...] = (
    *((f"image by tag: {name}", "image-digest", change) for name, change in kinds(BAD).items()),
    *((f"clean: {name}", None, change) for name, change in kinds(_GOOD).items()),
    ("an image without a repository", "image-digest", _engine("image", "@sha256:" + "1" * 64)),
    ("a blank before an image", "image-digest", _engine("image", " " + image("vllm"))),
    ("an image as a volume", "image-digest",
     pod(f"{POD}.volumes", [{"name": "a", "image": {"reference": "busybox:1"}}])),
    ("writable by text", "pod-writable-root", _engine(f"{_RIGHTS}.readOnlyRootFilesystem", "false")),
    ("root by text", "pod-root", pod(f"{POD}.{_RIGHTS}.runAsNonRoot", "false")),
    ("root by a user in text", "pod-root", pod(f"{POD}.{_RIGHTS}.runAsUser", "0")),
    ("privileged by text", "pod-privileged", _engine(f"{_RIGHTS}.privileged", "true")),
    ("drops all and adds one", "pod-privileged", _engine(f"{_RIGHTS}.capabilities.add", ["SYS_ADMIN"])),
    ("proc unmasked", "pod-privileged", _engine(f"{_RIGHTS}.procMount", "Unmasked")),
    ("a port of the node", "pod-host-access", _engine("ports", [{"containerPort": 8000, "hostPort": 8000}])),
    ("an empty hostPath", "pod-host-access", pod(f"{POD}.volumes", [{"name": "a", "hostPath": {}}])),
    ("a patch with the node's network", "pod-host-access",
     holding("apps/v1:DeploymentPatch", {"template": {"spec": {"hostNetwork": True}}})),
    ("a volume of the cluster on a node", "pod-host-access",
     holding("core/v1:PersistentVolume", {"hostPath": {"path": "/x"}})),
    ("a key as an argument", "pod-plain-secret", _engine("args", ["--api-key=nothing"])),
    ("a key as two arguments", "pod-plain-secret", _engine("args", ["--api-key", "nothing"])),
    ("a token in a shell's line", "pod-plain-secret",
     _engine("command", ["sh", "-c", "HF_TOKEN=nothing exec vllm serve"])),
    ("an APIKEY", "pod-plain-secret", _engine("env", [{"name": "OPENAI_APIKEY", "value": "x"}])),
    ("a PASSWD", "pod-plain-secret", _engine("env", [{"name": "DB_PASSWD", "value": "x"}])),
    ("a password in an address", "pod-plain-secret",
     _engine("env", [{"name": "CACHE_URL", "value": "redis://user:word@cache.invalid"}])),
    ("a token in a ConfigMap", "pod-plain-secret",
     add("kubernetes:core/v1:ConfigMap", "one", {"metadata": _HEAD, "data": {"HF_TOKEN": "x"}})),
    ("a password that is known later", "pod-plain-secret",
     add("kubernetes:core/v1:ConfigMap", "one", {"metadata": _HEAD, "data": {"DB_PASSWORD": UNKNOWN}})),
    ("clean: an id that is known later", None,
     add("kubernetes:core/v1:ConfigMap", "one", {"metadata": _HEAD, "data": {"BUCKET": UNKNOWN}})),
    ("clean: a volume of a file system", None,
     holding("core/v1:PersistentVolume", {"csi": {"driver": "fsx.csi.aws.com", "volumeHandle": UNKNOWN}})),
    ("a sidecar that starts first", "pod-probes",
     pod(f"{POD}.initContainers", [
         {**copy.deepcopy(_GOOD), "restartPolicy": "Always",
          "resources": {"limits": {"memory": "1Gi", "nvidia.com/gpu": 1}}}])),
    *((f"MIG on L4 by {label}", "mig-on-gpu-without",
       all_of(pod(f"{ENGINE.replace('.', '|')}|resources|limits|nvidia.com/mig-1g.10gb", 1),
              put(DEPLOYMENT, f"{POD}.nodeSelector", {label: value}), put(DEPLOYMENT, f"{POD}.affinity", {})))
      for label, value in (("enginehouse.dev/gpu", "L4"), ("nvidia.com/gpu.product", "NVIDIA-L4-SHARED"))),
    ("MIG that no pool has", "mig-on-gpu-without",
     all_of(pod(f"{ENGINE.replace('.', '|')}|resources|limits|nvidia.com/mig-9g.99gb", 1),
            put(DEPLOYMENT, f"{POD}.nodeSelector", {}), put(DEPLOYMENT, f"{POD}.affinity", {}))),
    ("isolation in capitals", "gpu-isolation",
     all_of(pod("metadata|labels|enginehouse.dev/isolation", "Hardware"),
            put(DEPLOYMENT, "spec|template|metadata|labels|enginehouse.dev/gpu-sharing", "MPS"))),
    ("clean: shares with a name of their own", None, all_of(alone, put(
        PLUGIN, "values.config.map.exclusive", _RENAMED))),
    ("clean: a share for who needs no isolation", None, all_of(
        pod("metadata|labels|enginehouse.dev/isolation", "shared"),
        put(PLUGIN, "values.config.map.exclusive", _RENAMED.replace("renameByDefault: true, ", "")))),
    ("clean: the network of the node off by text", None, pod(f"{POD}.hostNetwork", "false")),
    ("clean: EFA of which none is asked", None,
     pod(f"{ENGINE.replace('.', '|')}|resources|limits|vpc.amazonaws.com/efa", "0")),
    ("clean: a token of text", None, _engine("env", [{"name": "PAD_TOKEN", "value": "<pad>"}])),
    ("clean: a key by reference", None, _engine("args", ["--api-key=$(KEY)", "--api-key", "$(KEY)"])),
    ("clean: a patch of the replicas' wait", None, holding("apps/v1:DeploymentPatch", {"minReadySeconds": 3})),
    ("clean: a port of its own capability", None, _engine(f"{_RIGHTS}.capabilities.add", ["NET_BIND_SERVICE"])),
    ("clean: EFA of a set of workers", None, holding("leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", {
        "leaderWorkerTemplate": {"size": 2, "workerTemplate": template(
            {**_GOOD, "resources": {"limits": {"memory": "1Gi", "vpc.amazonaws.com/efa": 1}}})["template"]}})),
)  # fmt: skip
SCALERS: tuple[ROW, ...] = (
    ("a metric type in small letters", "keda-metric-type", trigger("spec.triggers.1.metricType", "value")),
    ("a metric type of processors", "keda-metric-type", trigger("spec.triggers.1.metricType", "Utilization")),
    ("zero where all is lost", "keda-null-values", _query("sum(vllm:num_requests_waiting) or vector(0)")),
    ("a metric by its label", "keda-metric-known", _query('sum({__name__="vllm_num_requests_waiting"})')),
    ("no metric at all", "keda-metric-known", _query('sum({job="chat"})')),
    ("a metric that vLLM renamed", "keda-metric-known", _query("avg(vllm:gpu_cache_usage_perc)", "Value")),
    ("the gateway in a label", "keda-wake-up", _sleeping(f'sum(vllm:num_requests_waiting{{a="{_GW}"}})')),
    ("the gateway and an engine", "keda-wake-up", _sleeping(f"sum({_GW}) and on() sum(vllm:num_requests_waiting)")),
    ("the gateway times an engine", "keda-wake-up", _sleeping(f"sum({_GW}) * sum(vllm:num_requests_running)")),
    ("the gateway times zero", "keda-wake-up", _sleeping(f"0 * sum({_GW})")),
    ("no replica at most", "keda-range",
     all_of(trigger("spec.maxReplicaCount", 0), put(SCALER, "spec.minReplicaCount", 0))),
    ("a count in words", "keda-range", trigger("spec.maxReplicaCount", "four")),
    ("a fallback that takes engines away", "keda-fallback", trigger("spec.fallback.behavior", "static")),
    ("jobs by a series for each pod", "keda-one-series", holding("keda.sh/v1alpha1:ScaledJob", {
        "triggers": [{"type": "prometheus", "metadata": {
            "query": "vllm:num_requests_waiting", "ignoreNullValues": "false"}}]})),
    ("a patch of a trigger", "keda-null-values", holding("keda.sh/v1alpha1:ScaledObjectPatch", {
        "triggers": [{"type": "prometheus", "metadata": {"query": "sum(vllm:num_requests_waiting)"}}]})),
    ("an old autoscaler beside KEDA", "replicas-one-owner", all_of(scaled, add(
        "kubernetes:autoscaling/v2beta2:HorizontalPodAutoscaler", "one", {"metadata": _HEAD, "spec": _SPEC}))),
    ("replicas by a patch", "replicas-one-owner", all_of(scaled, add(
        "kubernetes:apps/v1:DeploymentPatch", "one",
        {"metadata": {**_HEAD, "name": "chat"}, "spec": {"replicas": 2}}))),
    ("replicas of a custom kind", "replicas-one-owner", all_of(
        trigger("spec.scaleTargetRef.kind", "LeaderWorkerSet"), add(
            "kubernetes:leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", "one",
            {"metadata": {**_HEAD, "name": "chat"}, "spec": {"replicas": "two"}}))),
    *((f"replicas in words: {name}", "replicas-one-owner", change) for name, change in odd_replicas().items()),
    ("clean: replicas that nobody scales", None, all_of(deployed, put(DEPLOYMENT, "spec.replicas", 2))),
    ("an old definition beside its object", "crd-apart", all_of(
        _CHART, add("kubernetes:apiextensions.k8s.io/v1beta1:CustomResourceDefinition", "x", _CRD, parent="Chart keda"),
        add("kubernetes:helm.sh/v4:Chart", "inner", {"chart": "inner"}, parent="Chart keda"),
        add("kubernetes:keda.sh/v1alpha1:ScaledObjectPatch", "deep", {"metadata": _HEAD, "spec": {}},
            parent="Chart inner"))),
    ("clean: requests that ended", None, _query("sum(rate(vllm:request_success_total[1m]))")),
    ("clean: buckets of a histogram", None,
     _query("histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))", "Value")),
    ("clean: a mean by sum and count", None, _query(
        "sum(rate(vllm:e2e_request_latency_seconds_sum[5m])) / sum(rate(vllm:e2e_request_latency_seconds_count[5m]))",
        "Value")),
    ("clean: by a label that is fixed", None,
     _query('sum by (namespace) (vllm:num_requests_waiting{namespace="inference"})')),
    ("clean: a comment", None, _query("sum(vllm:num_requests_waiting) # those that wait")),
    ("clean: mean times count", None,
     _query("avg(vllm:num_requests_waiting) * count(vllm:num_requests_waiting)")),
)  # fmt: skip
AUTOSCALERS: tuple[ROW, ...] = tuple(
    (f"the Cluster Autoscaler beside Karpenter: {name}", "two-autoscalers", all_of(chart("karpenter"), change))
    for name, change in kinds(AUTOSCALER).items()
)
ROWS = (*PODS, *SCALERS, *AUTOSCALERS)
