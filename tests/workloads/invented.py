"""Invented pinned manifests and node pools."""

from collections.abc import Mapping
from typing import Any

from fleet.manifest import PinnedManifest, from_document
from fleet.node_pools import NodePool

REVISION = "9216db5781bf21249d130ec9da846c4624c16137"
VERSIONS = {"vllm": "0.33.0", "sglang": "0.5.23", "tensorrt-llm": "1.2.1", "lmdeploy": "0.18.0"}
SPEC: dict[str, Any] = {
    "workload": "chat",
    "model": {"id": "Qwen/Qwen3-32B", "revision": REVISION, "quantization": "fp8"},
    "batch": {"max_model_len": 32768},
    "hardware": {"instance_type": "p5.48xlarge", "gpus": 2},
    "parallelism": {"tensor": 2},
}
POOLS = (
    NodePool(name="h100", instance_type="p5.48xlarge"),
    NodePool(name="h100-mig", instance_type="p5.48xlarge", sharing="mig", mig_profile="1g.10gb"),
    NodePool(name="l4", instance_type="g6.xlarge"),
    NodePool(name="l4-shared", instance_type="g6.xlarge", sharing="time-slicing"),
)


def image(name: str) -> str:
    """An invented digest."""
    return f"invented.invalid/{name}@sha256:{'1' * 64}"


def pinned(
    name: str = "support-chat", on: str = "vllm", labels: Mapping[str, str] | None = None, **parts: Any
) -> PinnedManifest:
    """A pinned manifest with whole parts of its spec replaced; ``None`` leaves one out."""
    choice = {"name": on, "version": VERSIONS.get(on, "1.0.0"), "image": image(on)}
    spec = {**SPEC, "engine": choice, **parts}
    pin = {"source_digest": "sha256:0", "facts_digest": "sha256:0", "catalogue_digest": "sha256:0", "runtime": "image"}
    document = {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "PinnedInferenceDeployment",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {key: value for key, value in spec.items() if value is not None},
        "pin": pin,
    }
    found = from_document(document, source="invented")
    assert isinstance(found, PinnedManifest)
    return found
