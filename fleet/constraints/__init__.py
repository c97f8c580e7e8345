"""Constraints on a parallel plan: arithmetic of the model, kernels of the GPU, limits of the engine, sharing."""

from collections.abc import Iterator

from fleet.constraints.division import division
from fleet.constraints.engine_limits import engine_limits
from fleet.constraints.kernels import kernels
from fleet.hardware import GpuModel, SharingMode
from fleet.model import Model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import ModelFigures, figures_of
from fleet.plan_wish import EvidenceValue, Reason

__all__ = ["arithmetic", "context_length", "violations"]


def violations(
    model: Model,
    plan: ParallelPlan,
    gpu: GpuModel,
    engine: str,
    version: str | None = None,
    quantization: str | None = None,
    sharing: SharingMode = SharingMode.EXCLUSIVE,
) -> tuple[Reason, ...]:
    """Everything that forbids a plan, memory apart."""
    return arithmetic(figures_of(model, quantization, "auto"), plan, gpu, engine, version, sharing)


def arithmetic(
    figures: ModelFigures,
    plan: ParallelPlan,
    gpu: GpuModel,
    engine: str,
    version: str | None,
    sharing: SharingMode,
) -> tuple[Reason, ...]:
    """The same for a model whose figures are at hand."""
    return (
        *division(figures, plan),
        *kernels(figures, gpu, engine),
        *engine_limits(figures, plan, engine, version),
        *_sharing(plan, sharing),
    )


def context_length(model: Model, context_tokens: int) -> tuple[Reason, ...]:
    """Whether the context is beyond what the model was made for."""
    limit = model.max_context_tokens
    if limit is None or context_tokens <= limit:
        return ()
    message = f"a context of {context_tokens} tokens is above the model's own {limit}: refused without a rope override"
    return (Reason("context-length", message, {"context_tokens": context_tokens, "max_context_tokens": limit}),)


def _sharing(plan: ParallelPlan, sharing: SharingMode) -> Iterator[Reason]:
    if sharing is SharingMode.EXCLUSIVE or plan.gpus == 1:
        return
    evidence: dict[str, EvidenceValue] = {"gpus": plan.gpus, "sharing": sharing.value}
    if sharing is SharingMode.MIG:
        message = f"{plan} spans {plan.gpus} MIG instances, which have no peer-to-peer link: one instance, one rank"
        yield Reason("mig", message, evidence)
    else:
        message = (
            f"{plan} spans {plan.gpus} GPUs shared by {sharing.value}: ranks would wait for each other's neighbours"
        )
        yield Reason("sharing", message, evidence)
