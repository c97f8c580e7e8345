"""A pinned manifest becomes Kubernetes objects, purely."""

from workloads.ground import NodeLocalWeights, RenderGround, SharedWeights
from workloads.names import KubernetesObject
from workloads.refusal import Reason, RenderRefused
from workloads.render import render

__all__ = [
    "KubernetesObject",
    "NodeLocalWeights",
    "Reason",
    "RenderGround",
    "RenderRefused",
    "SharedWeights",
    "render",
]
