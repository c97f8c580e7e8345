"""What is served, and how: one model on one plan on one GPU by one engine, under requests of some lengths."""

from dataclasses import dataclass

from fleet.hardware import GpuModel
from fleet.model import Model
from fleet.parallel_plan import ParallelPlan

USUAL_TOKENS = 1024
"""Length of a prompt and of an answer where nothing is said."""


@dataclass(frozen=True, slots=True)
class Serving:
    """Everything that speed depends on but the number of requests in flight."""

    model: Model
    plan: ParallelPlan
    gpu: GpuModel
    """As fast as the plan has it: of a slice, its part of the rates."""
    engine: str
    quantization: str | None = None
    """``None`` = as the checkpoint is stored."""
    kv_dtype: str = "auto"
    input_tokens: int = USUAL_TOKENS
    output_tokens: int = USUAL_TOKENS
