"""Names and labels of what a manifest renders to."""

from collections.abc import Mapping
from typing import Any

from fleet.canonical import sha256_hex
from fleet.cloud.labels import DEPLOYMENT_LABEL, IDENTITY_LABEL, PREFIX
from fleet.manifest import PinnedManifest

KubernetesObject = dict[str, Any]
"""One object as the Kubernetes API takes it."""

MAX_LABEL = 63
MAX_SCALER_NAME = 54
"""KEDA puts ``keda-hpa-`` before it, and refuses longer names (kedacore/keda#7762)."""
_HASH_DIGITS = 8
_OWN = (f"{PREFIX}/", "app.kubernetes.io/")


def fitted(name: str, length: int = MAX_LABEL) -> str:
    """A DNS label of at most so many characters: the name itself, or its head and a hash of the whole."""
    if len(name) <= length:
        return name
    head = name[: length - _HASH_DIGITS - 1].rstrip("-")
    return f"{head}-{sha256_hex(name.encode())[:_HASH_DIGITS]}"


def scaler_name(name: str) -> str:
    """The name of a deployment's ScaledObject."""
    return fitted(name, MAX_SCALER_NAME)


def selector(name: str) -> dict[str, str]:
    """What finds the pods of a deployment, whatever their identity."""
    return {DEPLOYMENT_LABEL: name}


def pod_labels(pinned: PinnedManifest) -> dict[str, str]:
    """On pods: nothing that can change without another identity, since that would start engines anew."""
    engine = pinned.engine_name
    return {
        **selector(pinned.name),
        IDENTITY_LABEL: pinned.identity,
        "app.kubernetes.io/name": engine.value if engine else "none",
        "app.kubernetes.io/instance": pinned.name,
        "app.kubernetes.io/component": "engine",
        "app.kubernetes.io/part-of": "enginehouse",
    }


def object_labels(pinned: PinnedManifest) -> dict[str, str]:
    """On objects: the manifest's own labels below the house's."""
    own = {key: value for key, value in pinned.metadata.labels.items() if not key.startswith(_OWN)}
    return own | pod_labels(pinned)


def metadata(
    pinned: PinnedManifest, namespace: str, *, name: str = "", annotations: Mapping[str, str] | None = None
) -> KubernetesObject:
    """The head of an object."""
    head: KubernetesObject = {
        "name": name or pinned.name,
        "namespace": namespace,
        "labels": object_labels(pinned),
    }
    return head | ({"annotations": dict(annotations)} if annotations else {})
