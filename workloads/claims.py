"""GPUs by claims (dynamic resource allocation): what a pod asks for on pools whose driver hands them out so.

The API is that of Kubernetes 1.34 (``resource.k8s.io/v1``), before which the stack has no such pools.
"""

from fleet.manifest import PinnedManifest
from workloads.ground import RenderGround
from workloads.names import KubernetesObject, fitted, metadata
from workloads.placement import Place

CLAIM = "gpus"
"""The claim's name inside a pod, and that of its one request."""
DEVICE_CLASS = "gpu.nvidia.com"
"""Whole GPUs, as NVIDIA's DRA driver names them."""


def template_name(pinned: PinnedManifest, place: Place) -> str:
    """A template never changes, so that of another number of GPUs has another name."""
    return fitted(f"{pinned.name}-gpus-{place.hardware.gpus}")


def claim_template(pinned: PinnedManifest, place: Place, ground: RenderGround) -> KubernetesObject:
    """The template from which each pod gets a claim of its own."""
    exactly = {"deviceClassName": DEVICE_CLASS, "allocationMode": "ExactCount", "count": place.hardware.gpus}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata(pinned, ground.namespace, name=template_name(pinned, place)),
        "spec": {"spec": {"devices": {"requests": [{"name": CLAIM, "exactly": exactly}]}}},
    }


def pod_claims(pinned: PinnedManifest, place: Place) -> list[KubernetesObject]:
    """The claims of a pod."""
    return [{"name": CLAIM, "resourceClaimTemplateName": template_name(pinned, place)}]
