"""Which kernels a GPU has: compute capability per encoding and per kind of attention."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleet.hardware import GpuModel
from fleet.plan_figures import ModelFigures
from fleet.plan_wish import Reason

Capability = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Floor:
    """From which compute capability something runs, and where that was read."""

    least: Capability
    native: Capability
    message: str


FLOORS = {
    "bf16": Floor((8, 0), (8, 0), "bf16 needs compute capability 8.0"),
    "fp8": Floor(
        (8, 0), (8, 9), "fp8 is computed from 8.9 on; from 8.0 on Marlin unpacks the weights; below nothing does"
    ),
    "fp8-channel": Floor((8, 0), (8, 9), "fp8 is computed from 8.9 on; from 8.0 on Marlin unpacks the weights"),
    "nvfp4": Floor((10, 0), (10, 0), "nvfp4 is native from 10.0 on; its recipes name Blackwell only"),
    "mxfp4": Floor((8, 0), (10, 0), "mxfp4 runs from 8.0 on (Marlin unpacks the weights below 10.0)"),
}
"""Measured on A800 (fp8 by Marlin, vllm#40851), A100 (gpt-oss) and in recipes of vllm-project/recipes@8959cf6."""
OWN_FLOORS = {
    ("tensorrt-llm", name): Floor((8, 9), (8, 9), "TensorRT-LLM computes fp8 from 8.9 on, and unpacks it nowhere")
    for name in ("fp8", "fp8-channel")
}
"""Of one engine, where it needs more than others: precisions by GPU in TensorRT-LLM's support matrix (0.18.2)."""
SPARSE_FLOOR: Capability = (9, 0)
"""Sparse attention (DSA) and DeepSeek-V4 have no sm_80 kernels: vllm-project/vllm#40851."""
_COMPRESSED_ARCHITECTURES = ("DeepseekV4",)
BLOCK_FP8_FLOOR: Capability = (9, 0)
"""Block-FP8 CUTLASS kernels start here (vllm#58241): L4 and L40S fall back to Marlin."""


def kernels(figures: ModelFigures, gpu: GpuModel, engine: str) -> Iterator[Reason]:
    """Encodings and attention that this GPU can't run; nothing where its capability is not known."""
    has = gpu.compute_capability
    if has is None:
        return
    for name in figures.encodings:
        floor = OWN_FLOORS.get((engine, name)) or FLOORS.get(name)
        if floor is not None and has < floor.least:
            yield _reason(gpu, has, floor.least, name, floor.message)
    sparse = figures.has_sparse_attention or figures.model.architecture.startswith(_COMPRESSED_ARCHITECTURES)
    if sparse and has < SPARSE_FLOOR:
        message = "sparse attention has no kernels below 9.0"
        yield _reason(gpu, has, SPARSE_FLOOR, "sparse attention", message)


def kernel_notes(figures: ModelFigures, gpu: GpuModel) -> tuple[str, ...]:
    """What runs, but not natively."""
    has = gpu.compute_capability
    if has is None:
        return (f"the compute capability of {gpu.name} is not known: kernels were not checked",)
    notes = []
    for name, encoding in figures.encodings.items():
        floor = FLOORS.get(name)
        if floor is not None and floor.least <= has < floor.native:
            notes.append(
                f"{gpu.name} (compute capability {_shown(has)}) unpacks {name} weights: it saves memory, not time"
            )
        elif encoding.block and floor is not None and floor.native <= has < BLOCK_FP8_FLOOR:
            notes.append(f"block-{name} kernels start at 9.0: {gpu.name} ({_shown(has)}) unpacks the weights (Marlin)")
    return tuple(notes)


def _reason(gpu: GpuModel, has: Capability, least: Capability, what: str, message: str) -> Reason:
    evidence = {"gpu": gpu.name, "has": _shown(has), "needs": _shown(least), "what": what}
    return Reason("compute-capability", f"{gpu.name} has {_shown(has)}: {message}", evidence)


def _shown(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"
