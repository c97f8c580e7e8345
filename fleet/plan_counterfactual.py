"""What would make the nearest miss fit: one change at a time, each judged like any plan."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fleet.hardware import GpuModel
from fleet.memory import Memory
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import ModelFigures, figures_of
from fleet.plan_judgement import Judged, judge
from fleet.plan_search import Field, smallest
from fleet.plan_wish import PlanWish, gpus_in_words

SMALLER_ENCODINGS = ("fp8", "nvfp4", "int4")
"""Tried in this order; a checkpoint in it must exist."""
STEPS_OF_BISECTION = 32


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A change with which it would fit."""

    change: str
    """``quantization``, ``gpus``, ``kv-dtype``, ``context``, ``concurrency``."""
    value: int | str
    message: str


def counterfactuals(
    figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field, miss: Judged
) -> tuple[Counterfactual, ...]:
    """Every single change that would do, the cheapest first."""
    return (
        *_shorter(figures, gpu, wish, miss),
        *_fewer_at_once(figures, gpu, wish, miss),
        *_kv_cache(figures, gpu, wish, field, miss),
        *_encodings(figures, gpu, wish, field, miss),
        *_more_gpus(figures, gpu, wish, field, miss),
    )


def largest_context(figures: ModelFigures, plan: ParallelPlan, memory: Memory) -> int:
    """The longest context of which the cache holds the wished sequences at once; 0 when none."""
    wanted, limit = max(1, memory.sequences_wanted), figures.model.max_context_tokens
    low, high = 0, limit or (1 << 24)
    for _ in range(STEPS_OF_BISECTION):
        if low >= high:
            break
        middle = (low + high + 1) // 2
        size = figures.sequence_bytes(plan, middle)
        if isinstance(size, Missing) or size * wanted > memory.kv_cache:
            high = middle - 1
        else:
            low = middle
    return low


def _shorter(figures: ModelFigures, gpu: GpuModel, wish: PlanWish, miss: Judged) -> Iterator[Counterfactual]:
    memory = miss.memory
    only_context = {reason.rule for reason in miss.forbidden} <= {"context-length"}
    if isinstance(memory, Missing) or not memory.starts or not only_context:
        return
    longest = largest_context(figures, miss.plan, memory)
    if 0 < longest < memory.context_tokens:
        yield Counterfactual("context", longest, f"fits with a context of {longest} tokens")


def _fewer_at_once(figures: ModelFigures, gpu: GpuModel, wish: PlanWish, miss: Judged) -> Iterator[Counterfactual]:
    memory = miss.memory
    if isinstance(memory, Missing) or miss.forbidden or not memory.starts or memory.holds_wish:
        return
    holds = int((memory.sequences or 0) / memory.data_ranks) * memory.data_ranks  # each rank takes as many
    if holds >= 1:
        yield Counterfactual("concurrency", holds, f"fits with {holds} sequence{'' if holds == 1 else 's'} in flight")


def _kv_cache(
    figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field, miss: Judged
) -> Iterator[Counterfactual]:
    if wish.kv_dtype == "fp8" or isinstance(miss.memory, Missing) or not miss.memory.starts:
        return
    smaller = replace(wish, kv_dtype="fp8")
    if _fits(figures.model, gpu, smaller, field, miss):
        yield Counterfactual("kv-dtype", "fp8", "fits with an fp8 KV cache")


def _encodings(
    figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field, miss: Judged
) -> Iterator[Counterfactual]:
    for name in SMALLER_ENCODINGS:
        if name == wish.quantization or name in figures.encodings or isinstance(miss.memory, Missing):
            continue
        if _fits(figures.model, gpu, replace(wish, quantization=name), field, miss):
            yield Counterfactual("quantization", name, f"fits as {name}, where such a checkpoint exists")
            return


def _more_gpus(
    figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field, miss: Judged
) -> Iterator[Counterfactual]:
    if field.domain == 1 and wish.mig_profile:
        return
    open_wish = _without_plan(wish)
    wider = replace(field, gpus=max(field.gpus, miss.plan.gpus, field.node) * 2)
    found = smallest(figures, gpu, open_wish, wider)
    if found is not None:
        message = f"fits on {gpus_in_words(found.plan.gpus)} as {found.plan}"
        yield Counterfactual("gpus", found.plan.gpus, message)


def _fits(model: Model, gpu: GpuModel, wish: PlanWish, field: Field, miss: Judged) -> bool:
    figures = figures_of(model, wish.quantization, wish.kv_dtype)
    if wish.is_explicit:
        return judge(figures, miss.plan, gpu, wish).fits == "yes"
    return smallest(figures, gpu, wish, field) is not None


def _without_plan(wish: PlanWish) -> PlanWish:
    return replace(wish, tensor=None, pipeline=None, expert=None, data=None, context_parallel=None, gpus=None)
