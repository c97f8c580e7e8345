"""Manifests of these tests, and the golden command lines that are made from them.

python tests/engines/golden.py      # writes tests/engines/golden/*.json anew
"""

import json
from pathlib import Path
from typing import Any

from engines.catalogue import load
from fleet.manifest import PinnedManifest, from_document

FOLDER = Path(__file__).parent / "golden"
REVISION = "9216db5781bf21249d130ec9da846c4624c16137"
SPEC: dict[str, Any] = {
    "workload": "chat",
    "model": {"id": "Qwen/Qwen3-32B", "revision": REVISION, "quantization": "fp8"},
    "served_name": "support-chat",
    "batch": {"max_model_len": 32768, "max_num_seqs": 128, "max_num_batched_tokens": 8192},
    "hardware": {"instance_type": "p5.48xlarge", "gpus": 2},
    "parallelism": {"tensor": 2},
    "features": {"structured_output": True, "tool_parser": "qwen3_coder"},
}
PIN = {"source_digest": "sha256:0", "facts_digest": "sha256:0", "catalogue_digest": "sha256:0", "runtime": "process"}
ENGINES: dict[str, tuple[str, ...]] = {
    "vllm": ("0.18.1", "0.24.0", "0.33.0"),
    "sglang": ("0.5.10.post1", "0.5.23"),
    "tensorrt-llm": ("1.2.1",),
    "lmdeploy": ("0.12.3", "0.18.0"),
    "deepspeed": ("0.19.8",),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "chat": {},
    "everything": {
        "model": {"id": "acme/vision-moe", "revision": REVISION, "quantization": "bf16"},
        "batch": {"max_model_len": 8192, "kv_cache_dtype": "fp8", "enable_prefix_caching": False},
        "parallelism": {"tensor": 4, "pipeline": 2},
        "hardware": {"instance_type": "p5.48xlarge", "gpus": 8},
        "features": {
            "modalities": ["text", "image"],
            "lora": ["acme/tone", "legal=acme/legal-lora"],
            "speculative": "ngram",
            "kv_offload": "mooncake",
            "trust_remote_code": True,
        },
    },
}


def pinned(
    engine: str,
    version: str,
    *,
    flags: dict[str, Any] | None = None,
    choice: dict[str, Any] | None = None,
    **parts: Any,
) -> PinnedManifest:
    """A pinned manifest on an engine: the plain one, with whole parts of the spec replaced."""
    plain = {"name": engine, "version": version, "runtime": "process", "flags": flags or {}}
    return _pinned({**SPEC, "engine": plain | (choice or {}), **parts})


def _pinned(spec: dict[str, Any]) -> PinnedManifest:
    found = from_document(
        {
            "apiVersion": "enginehouse.dev/v1",
            "kind": "PinnedInferenceDeployment",
            "metadata": {"name": "support-chat"},
            "spec": spec,
            "pin": PIN,
        }
    )
    assert isinstance(found, PinnedManifest)
    return found


def cases() -> dict[str, PinnedManifest]:
    """Name of a golden file -> the manifest that it is made from."""
    return {
        f"{engine}-{version}-{name}": pinned(engine, version, **parts)
        for engine, versions in ENGINES.items()
        for version in versions
        for name, parts in VARIANTS.items()
    }


def render(manifest: PinnedManifest) -> str:
    """The command as the golden files hold it: one argument to a line."""
    command = load().command_line(manifest, host="0.0.0.0", port=8000)  # noqa: S104 - a pod listens on its own address
    plain = {"argv": command.argv, "environment": command.environment, "files": command.files}
    return json.dumps(plain, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, manifest in cases().items():
        (FOLDER / f"{name}.json").write_text(render(manifest), encoding="utf-8")
