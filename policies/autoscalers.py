"""What makes and removes nodes in a stack: charts, objects of their own kinds, pods, and the cluster's own way."""

from collections.abc import Iterator

from pulumi_policy.proxy import UnknownValueError

from policies.adapter import Seen, Stack
from policies.groups import CLUSTER
from policies.helm import has_chart
from policies.kubernetes_objects import all_objects, holds_pods, known_pods
from policies.reading import flag, text
from workloads.pod_places import CONTAINER_LISTS, PodPlace
from workloads.values import as_maps

_NODE_CLASS = "kubernetes:karpenter.k8s.aws/"
_NODE_POOL = "kubernetes:karpenter.sh/"
_AUTO_MODE_GROUP = "eks.amazonaws.com"
_CLUSTER_AUTOSCALER = "cluster-autoscaler"


def has_karpenter(stack: Stack) -> bool:
    """Whether Karpenter is there: its chart, one of its node classes, or a node pool that is not Auto Mode's."""
    return has_chart(stack, "karpenter") or any(_is_karpenter(item) for item in stack.by_urn.values())


def _is_karpenter(seen: Seen) -> bool:
    if seen.type.startswith(_NODE_CLASS):
        return True
    if not seen.type.startswith(_NODE_POOL) or not seen.type.endswith(":NodePool"):
        return False
    return text(seen.props, "spec", "template", "spec", "nodeClassRef", "group") != _AUTO_MODE_GROUP


def has_auto_mode(stack: Stack) -> bool:
    """Whether a cluster makes nodes by itself."""
    return any(flag(cluster.props, "computeConfig", "enabled") for cluster in stack.of(CLUSTER))


def has_cluster_autoscaler(stack: Stack) -> bool:
    """Whether the Cluster Autoscaler is there: its chart, or a pod of any kind of object with its image."""
    return has_chart(stack, _CLUSTER_AUTOSCALER) or any(_runs_it(seen) for seen in all_objects(stack))


def _runs_it(seen: Seen) -> bool:
    images = (image for place in known_pods(seen) for image in _images(place)) if holds_pods(seen) else ()
    return any(_CLUSTER_AUTOSCALER in image.rpartition("/")[2] for image in images)


def _images(place: PodPlace) -> Iterator[str]:
    for container in (item for key in CONTAINER_LISTS for item in as_maps(place.spec.get(key))):
        image = container.get("image")
        if isinstance(image, UnknownValueError):
            raise image
        yield str(image or "")
