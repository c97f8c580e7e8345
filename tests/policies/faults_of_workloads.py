"""Faults of manifests, of workload objects and of what scales them. The manifest and its objects are invented."""

import copy
from functools import lru_cache
from typing import Any

from engines.catalogue import load
from fleet.cloud.labels import EFA_RESOURCE, GPU_RESOURCE, ISOLATION_LABEL, MANIFEST_LABEL, SHARED_GPU_RESOURCE
from fleet.manifest import PinnedManifest, dump
from tests.infra.stacks import PROD
from tests.policies.edited import Program
from tests.policies.fault import Change, Fault, add, all_of, drop, put
from tests.policies.faults_of_nodes import PLUGIN
from tests.workloads import invented
from workloads import RenderGround, render

MAP = "ConfigMap manifest-chat"
DEPLOYMENT, SCALER = "Deployment chat", "ScaledObject chat"
_POD = "spec.template.spec"
_ENGINE = f"{_POD}.containers.0"
_LIMITS = f"{_ENGINE}|resources|limits".replace(".", "|")
_SCALED = "kubernetes:keda.sh/v1alpha1:ScaledObject"
HARDWARE = {"instance_type": "p5.48xlarge", "gpus": 2, "purchase": "capacity-block"}


@lru_cache(maxsize=1)
def manifest() -> PinnedManifest:
    """A manifest that fits the stack."""
    scaling = {"min": 1, "max": 4}
    return invented.pinned("chat", hardware=HARDWARE, scaling=scaling)


@lru_cache(maxsize=1)
def _objects() -> dict[str, dict[str, Any]]:
    ground = RenderGround(pools=PROD.pools)
    return {item["kind"]: item for item in render(manifest(), load(), ground)}


def config_map(text: str) -> Change:
    """A ConfigMap that is labelled as a manifest."""
    head = {"name": "manifest-chat", "namespace": "inference", "labels": {MANIFEST_LABEL: "chat"}}
    return add("kubernetes:core/v1:ConfigMap", "manifest-chat", {"metadata": head, "data": {"manifest.yaml": text}})


def carried(**parts: Any) -> Change:
    """A manifest with some parts of its spec replaced, in its ConfigMap."""
    return lambda program: config_map(dump(invented.pinned("chat", **{"hardware": HARDWARE, **parts})))(program)


def served(program: Program) -> None:
    """The manifest in its ConfigMap, and what it renders to as objects of the program."""
    config_map(dump(manifest()))(program)
    deployed(program)
    scaled(program)


def deployed(program: Program) -> None:
    """The Deployment alone."""
    program.add("kubernetes:apps/v1:Deployment", "chat", copy.deepcopy(_objects()["Deployment"]))


def scaled(program: Program) -> None:
    """The ScaledObject alone."""
    program.add(_SCALED, "chat", copy.deepcopy(_objects()["ScaledObject"]))


def pod(path: str, value: Any) -> Change:
    """Write something into the Deployment."""
    return all_of(deployed, put(DEPLOYMENT, path, value))


def without(path: str) -> Change:
    """Take something out of the Deployment."""
    return all_of(deployed, drop(DEPLOYMENT, path))


def trigger(path: str, value: Any) -> Change:
    """Write something into the ScaledObject."""
    return all_of(scaled, put(SCALER, path, value))


def wants_isolation(program: Program) -> None:
    deployed(program)
    program.put(DEPLOYMENT, f"metadata|labels|{ISOLATION_LABEL}", "hardware")
    program.drop(DEPLOYMENT, f"{_LIMITS}|{GPU_RESOURCE}")
    program.put(DEPLOYMENT, f"{_LIMITS}|{SHARED_GPU_RESOURCE}", "1")


def alone(program: Program) -> None:
    """A Deployment that needs isolation and asks for whole GPUs."""
    deployed(program)
    program.put(DEPLOYMENT, f"metadata|labels|{ISOLATION_LABEL}", "hardware")


def second_scaler(program: Program) -> None:
    scaled(program)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"}
    head = {"name": "other", "namespace": "inference"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": []}
    program.add("kubernetes:autoscaling/v2:HorizontalPodAutoscaler", "other", {"metadata": head, "spec": spec})


def definition_beside_object(program: Program) -> None:
    program.add("kubernetes:helm.sh/v4:Chart", "keda", {"chart": "keda"})
    names = {"kind": "ScaledObject", "plural": "scaledobjects"}
    crd = {"metadata": {"name": "scaledobjects.keda.sh"}, "spec": {"group": "keda.sh", "names": names}}
    kind = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
    program.add(kind, "scaledobjects", crd, parent="Chart keda")
    program.add(_SCALED, "chat", copy.deepcopy(_objects()["ScaledObject"]), parent="Chart keda")


_SHARES = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
_SHARE, _QUEUE = "spec.triggers.0", "spec.triggers.1"
MANIFESTS = (
    Fault("a manifest that is none", "manifest-unreadable", config_map("kind: Nothing")),
    Fault("a manifest that is not pinned", "manifest-unreadable",
          config_map("kind: InferenceDeployment\nmetadata: {name: chat}\n")),
    Fault("an image that nobody recorded", "manifest-refused",
          carried(engine={"name": "vllm", "version": "0.33.0", "image": f"other.invalid/vllm@sha256:{'2' * 64}"})),
    Fault("an engine that knows no such flag", "manifest-refused",
          carried(batch={"max_model_len": 10_000_000})),
)  # fmt: skip
OBJECTS = (
    Fault("an image by tag", "image-digest", pod(f"{_ENGINE}.image", "vllm/vllm-openai:v0.33.0")),
    Fault("EFA for one node", "efa-single-node", pod(f"{_LIMITS}|{EFA_RESOURCE}", "32")),
    Fault("a MIG profile that the GPU lacks", "mig-on-gpu-without", pod(f"{_LIMITS}|nvidia.com/mig-1g.5gb", "1")),
    Fault("a shared GPU for who needs isolation", "gpu-isolation", wants_isolation),
    Fault("a share of a GPU under the name of a whole one", "gpu-isolation-nodes",
          all_of(alone, put(PLUGIN, "values.config.map.exclusive", _SHARES))),
    Fault("an engine without a startup probe", "pod-probes", without(f"{_ENGINE}.startupProbe")),
    Fault("no memory limit", "pod-limits", without(f"{_ENGINE}.resources.limits.memory")),
    Fault("a privileged container", "pod-privileged", pod(f"{_ENGINE}.securityContext.privileged", True)),
    Fault("a container as root", "pod-root", pod(f"{_POD}.securityContext.runAsNonRoot", False)),
    Fault("no seccomp profile", "pod-seccomp",
          pod(f"{_POD}.securityContext.seccompProfile", {"type": "Unconfined"})),
    Fault("the node's network", "pod-host-access", pod(f"{_POD}.hostNetwork", True)),
    Fault("a root file system to write on", "pod-writable-root",
          pod(f"{_ENGINE}.securityContext.readOnlyRootFilesystem", False)),
    Fault("a token in the object", "pod-plain-secret",
          pod(f"{_ENGINE}.env", [{"name": "HF_TOKEN", "value": "nothing"}])),
)  # fmt: skip
SCALING = (
    Fault("an average compared as AverageValue", "keda-metric-type",
          trigger(f"{_SHARE}.metricType", "AverageValue")),
    Fault("a sum compared as Value", "keda-metric-type", trigger(f"{_QUEUE}.metricType", "Value")),
    Fault("a series for each pod", "keda-one-series",
          trigger(f"{_QUEUE}.metadata.query", "vllm:num_requests_waiting")),
    Fault("an empty answer is zero", "keda-null-values", trigger(f"{_QUEUE}.metadata.ignoreNullValues", "true")),
    Fault("a metric with an underscore for the colon", "keda-metric-known",
          trigger(f"{_QUEUE}.metadata.query", "sum(vllm_num_requests_waiting)")),
    Fault("a metric's own name", "keda-metric-name", trigger(f"{_QUEUE}.metadata.metricName", "waiting")),
    Fault("no fallback", "keda-fallback", all_of(scaled, drop(SCALER, "spec.fallback"))),
    Fault("to zero and never back", "keda-wake-up",
          all_of(trigger("spec.minReplicaCount", 0), drop(SCALER, "spec.triggers.2"))),
    Fault("a name of 60 characters", "keda-name-length", trigger("metadata.name", "a" * 60)),
    Fault("min over max", "keda-range", trigger("spec.minReplicaCount", 9)),
    Fault("replicas beside a scaler", "replicas-one-owner",
          all_of(deployed, scaled, put(DEPLOYMENT, "spec.replicas", 2))),
    Fault("two scalers", "replicas-one-owner", second_scaler),
    Fault("definition and object in one chart", "crd-apart", definition_beside_object),
)  # fmt: skip
FAULTS = (*MANIFESTS, *OBJECTS, *SCALING)
CLEAN = (served, deployed, scaled)
