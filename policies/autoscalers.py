"""What makes and removes nodes in a stack: charts, objects of their own kinds, pods, and the cluster's own way."""

from collections.abc import Iterator

from pulumi_policy.proxy import UnknownValueError

from policies.adapter import Seen
from policies.groups import CLUSTER
from policies.helm import CHARTS, chart_name
from policies.kubernetes_objects import holds_pods, known_pods
from policies.reading import flag, text
from workloads.pod_places import CONTAINER_LISTS, PodPlace
from workloads.values import as_maps

_NODE_CLASS = "kubernetes:karpenter.k8s.aws/"
_NODE_POOL = "kubernetes:karpenter.sh/"
_AUTO_MODE_GROUP = "eks.amazonaws.com"
KARPENTER, CLUSTER_AUTOSCALER, AUTO_MODE = "karpenter", "cluster-autoscaler", "auto-mode"
"""The ways of making nodes; the first two are the names of their charts."""


def ways_of(seen: Seen) -> Iterator[str]:
    """The ways of making nodes that a resource tells of, but for what runs in its pods.

    Karpenter is there by its chart, by one of its node classes, or by a node pool that is not Auto Mode's; the Cluster
    Autoscaler by its chart; Auto Mode by a cluster that makes nodes by itself.
    """
    if seen.type in CHARTS and chart_name(seen) in (KARPENTER, CLUSTER_AUTOSCALER):
        yield chart_name(seen)
    if _is_karpenter(seen):
        yield KARPENTER
    if seen.type == CLUSTER and flag(seen.props, "computeConfig", "enabled"):
        yield AUTO_MODE


def ways_of_pods(seen: Seen) -> Iterator[str]:
    """The Cluster Autoscaler, where a pod of any kind of object has its image."""
    images = (image for place in known_pods(seen) for image in _images(place)) if holds_pods(seen) else ()
    if any(CLUSTER_AUTOSCALER in image.rpartition("/")[2] for image in images):
        yield CLUSTER_AUTOSCALER


def _is_karpenter(seen: Seen) -> bool:
    if seen.type.startswith(_NODE_CLASS):
        return True
    if not seen.type.startswith(_NODE_POOL) or not seen.type.endswith(":NodePool"):
        return False
    return text(seen.props, "spec", "template", "spec", "nodeClassRef", "group") != _AUTO_MODE_GROUP


def _images(place: PodPlace) -> Iterator[str]:
    for container in (item for key in CONTAINER_LISTS for item in as_maps(place.spec.get(key))):
        image = container.get("image")
        if isinstance(image, UnknownValueError):
            raise image
        yield str(image or "")
