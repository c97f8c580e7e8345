"""Which kinds of parallelism each engine has. Facts: the known flag lists of each version (engines/data)."""

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import Version

from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import ModelFigures
from fleet.plan_wish import EvidenceValue, Reason
from fleet.versions import parse_public


@dataclass(frozen=True, slots=True)
class EngineParallelism:
    """What one engine can do, and how its expert parallelism is sized."""

    pipeline: bool = False
    pipeline_from: str | None = None
    context: bool = False
    """Context parallelism that adds GPUs."""
    context_from: str | None = None
    data: bool = False
    expert_over_all_ranks: bool = False
    """Experts are spread over all ranks of a stage or not at all; else over any divisor of them."""
    expert: bool = False


ENGINES = {
    "vllm": EngineParallelism(
        pipeline=True, context=True, context_from="0.18.0", data=True, expert=True, expert_over_all_ranks=True
    ),
    "sglang": EngineParallelism(pipeline=True, pipeline_from="0.4.10.post2", data=True, expert=True),
    "tensorrt-llm": EngineParallelism(pipeline=True, context=True, data=True, expert=True),
}
"""TensorRT-LLM's and SGLang's data parallelism is that of attention, inside the tensor-parallel group."""
TENSOR_ONLY = EngineParallelism()


def engine_limits(figures: ModelFigures, plan: ParallelPlan, engine: str, version: str | None) -> Iterator[Reason]:
    """What the engine or this version of it can't do of a plan."""
    known = ENGINES.get(engine, TENSOR_ONLY)
    yield from _missing_kinds(plan, engine, known)
    for kind, size, first in (
        ("pipeline", plan.pipeline, known.pipeline_from),
        ("context", plan.context, known.context_from),
    ):
        if size > 1 and first and _is_below(version, first):
            message = f"{engine} {version}: the first version that is known to have {kind} parallelism is {first}"
            yield Reason("engine-limit", message, {"engine": engine, kind: size})
    if known.expert_over_all_ranks and plan.expert > 1 and plan.expert != plan.stage_ranks:
        message = (
            f"{engine} spreads experts over all {plan.stage_ranks} ranks of a stage or none, not over {plan.expert}"
        )
        evidence: dict[str, EvidenceValue] = {"engine": engine, "expert": plan.expert, "stage_ranks": plan.stage_ranks}
        yield Reason("engine-limit", message, evidence)
    if engine == "tensorrt-llm" and plan.data > 1 and figures.model.experts is None:
        message = (
            "tensorrt-llm has data parallelism for the attention of mixtures of experts only; start replicas instead"
        )
        yield Reason("engine-limit", message, {"engine": engine, "data": plan.data})


def _missing_kinds(plan: ParallelPlan, engine: str, known: EngineParallelism) -> Iterator[Reason]:
    sizes = (
        ("pipeline", plan.pipeline, known.pipeline),
        ("context", plan.context, known.context),
        ("data", plan.data, known.data),
        ("expert", plan.expert, known.expert),
    )
    for kind, size, has in sizes:
        if size > 1 and not has:
            message = f"{engine} has no {kind} parallelism that adds GPUs"
            yield Reason("engine-limit", message, {"engine": engine, kind: size})


def _is_below(version: str | None, bound: str) -> bool:
    parsed = None if version is None else parse_public(version)
    return parsed is not None and parsed < Version(bound)
