"""What makes and removes nodes in a stack: charts, objects of their own kinds, and the cluster's own way."""

from policies.adapter import Seen, Stack
from policies.groups import CLUSTER
from policies.helm import has_chart
from policies.reading import flag, parts, text

_DEPLOYMENTS = ("kubernetes:apps/v1:Deployment", "kubernetes:apps/v1:DeploymentPatch")
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
    """Whether the Cluster Autoscaler is there: its chart, or a Deployment with its image."""
    return has_chart(stack, _CLUSTER_AUTOSCALER) or any(map(_runs_it, stack.of(*_DEPLOYMENTS)))


def _runs_it(deployment: Seen) -> bool:
    containers = parts(deployment.props, "spec", "template", "spec", "containers")
    images = (text(container, "image") or "" for container in containers)
    return any(_CLUSTER_AUTOSCALER in image.rpartition("/")[2] for image in images)
