"""Kubernetes objects of a program, as the API server will get them."""

from policies.adapter import Seen
from policies.reading import plain
from workloads import KubernetesObject

POD_OWNERS = (
    "kubernetes:apps/v1:Deployment",
    "kubernetes:apps/v1:StatefulSet",
    "kubernetes:apps/v1:DaemonSet",
    "kubernetes:apps/v1:ReplicaSet",
    "kubernetes:batch/v1:Job",
    "kubernetes:batch/v1:CronJob",
    "kubernetes:core/v1:Pod",
)
SCALED_OBJECTS = ("kubernetes:keda.sh/v1alpha1:ScaledObject",)
SCALERS = (
    *SCALED_OBJECTS,
    "kubernetes:autoscaling/v2:HorizontalPodAutoscaler",
    "kubernetes:autoscaling/v1:HorizontalPodAutoscaler",
)
DEFINITION = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
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


def object_of(seen: Seen) -> KubernetesObject:
    """The object, read to its last value: one that is unknown somewhere is not judged yet."""
    version, _, kind = seen.type.removeprefix("kubernetes:").rpartition(":")
    found = {str(key): plain(value) for key, value in seen.props.items()}
    return {"apiVersion": version.removeprefix("core/"), "kind": kind, **found}


def kind_of(seen: Seen) -> str:
    """Its kind as ``group/Kind``; the core group has no name."""
    version, _, kind = seen.type.removeprefix("kubernetes:").rpartition(":")
    return f"{version.rpartition('/')[0]}/{kind}"
