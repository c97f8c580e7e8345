"""Enumerates parallel plans over some GPUs and finds the smallest that fits.

Tensor parallelism stays inside the domain of fast links (NVLink, else the node); pipeline parallelism goes across.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from fleet.constraints.engine_limits import ENGINES, TENSOR_ONLY
from fleet.hardware import GpuModel, SharingMode, node_gpus, tensor_domain
from fleet.memory import visible_bytes
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import ModelFigures
from fleet.plan_judgement import Judged, judge
from fleet.plan_wish import PlanWish

NODES_WHEN_OPEN = 4
"""Nodes that are tried when nothing says how many GPUs there are."""
LONG_CONTEXT_TOKENS = 131072
"""From here on context parallelism is tried as well."""
MANY_SEQUENCES = 32
"""Sequences in flight from which a latent cache is better kept once per rank than copied."""


@dataclass(frozen=True, slots=True)
class Field:
    """Where plans are looked for."""

    gpus: int
    """Offered GPUs."""
    node: int
    domain: int
    """GPUs that tensor parallelism may span."""


def field_of(gpu: GpuModel, wish: PlanWish, node: int | None = None) -> Field:
    """The GPUs that the wish offers; without a number, up to four nodes."""
    size = node or node_gpus(gpu.name)
    if wish.sharing is SharingMode.MIG or wish.mig_profile:
        return Field(gpus=1, node=size, domain=1)
    domain = max(size, tensor_domain(gpu.name)) if node is None else size
    return Field(gpus=wish.gpus or size * NODES_WHEN_OPEN, node=size, domain=max(domain, 1))


def enumerate_plans(figures: ModelFigures, wish: PlanWish, gpus: int, field: Field) -> tuple[ParallelPlan, ...]:
    """Every plan over exactly so many GPUs, the preferred one first."""
    is_moe = figures.model.experts is not None
    long = wish.context_of(figures.model) >= LONG_CONTEXT_TOKENS
    plans = _plans(gpus, wish.engine, is_moe, long, field)
    many = figures.is_latent and is_moe and wish.concurrency >= MANY_SEQUENCES
    return plans if not many else tuple(sorted(plans, key=_latent_order))


def search(figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field) -> Iterator[Judged]:
    """Every candidate, judged, from the fewest GPUs up; counts that can't hold the weights are left out."""
    for gpus in range(least_gpus(figures, gpu, wish, field), field.gpus + 1):
        for plan in enumerate_plans(figures, wish, gpus, field):
            yield judge(figures, plan, gpu, wish)


def smallest(figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field) -> Judged | None:
    """The preferred plan of the fewest GPUs that fits."""
    return next((found for found in search(figures, gpu, wish, field) if found.fits == "yes"), None)


def least_gpus(figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field) -> int:
    """A lower bound from the weights alone; the offered count where even that is too few."""
    whole, visible = figures.rank_weights(ParallelPlan()), visible_bytes(gpu, wish)
    if isinstance(whole, Missing) or not visible:
        return 1
    padding_aside = 0.7
    """Loaded experts may be padded by up to 42 % on one rank and less on many."""
    return max(1, min(field.gpus, int(whole * padding_aside / visible)))


def fewest_per_count(candidates: Iterator[Judged]) -> dict[int, Judged]:
    """The first fitting plan for each number of GPUs."""
    found: dict[int, Judged] = {}
    for item in candidates:
        if item.fits == "yes":
            found.setdefault(item.plan.gpus, item)
    return found


@lru_cache(maxsize=4096)
def _plans(gpus: int, engine: str, is_moe: bool, long: bool, field: Field) -> tuple[ParallelPlan, ...]:
    known = ENGINES.get(engine, TENSOR_ONLY)
    found = []
    for pipeline in _divisors(gpus) if known.pipeline else (1,):
        for context in (1, 2, 4) if long and known.context else (1,):
            stage, rest = divmod(gpus // pipeline, context)
            if rest == 0 and stage:
                found += _stages(stage, pipeline, context, is_moe and known.expert, known.data)
    fitting = (plan for plan in found if plan.gpus == gpus and plan.tensor <= field.domain)
    return tuple(sorted(fitting, key=lambda plan: _order(plan, field)))


def _stages(stage: int, pipeline: int, context: int, experts: bool, data: bool) -> Iterator[ParallelPlan]:
    for ranks in _divisors(stage) if data else (1,):
        flat = ParallelPlan(stage // ranks, pipeline, ranks, 0, context)
        yield flat
        if experts and stage * context > 1:
            yield ParallelPlan(stage // ranks, pipeline, ranks, stage * context, context)


def _order(plan: ParallelPlan, field: Field) -> tuple[int, ...]:
    crosses = int(plan.stage_ranks > field.domain)
    return (crosses, plan.pipeline, plan.context, plan.data, plan.expert)


def _latent_order(plan: ParallelPlan) -> tuple[int, ...]:
    return (plan.pipeline, plan.context, -plan.data, -plan.expert)


@lru_cache(maxsize=1024)
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(size for size in range(1, number + 1) if number % size == 0)
