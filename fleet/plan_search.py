"""Enumerates parallel plans over some GPUs and finds the smallest that fits.

What is proposed is what people would start: 1, 2, 4, ... GPUs of a node, a whole node, or whole nodes. Tensor
parallelism stays inside the domain of fast links (NVLink, else the node); pipeline parallelism goes across nodes, and
inside one only where its GPUs have no NVLink; experts with data-parallel attention may go across as well. A dense model
is not copied by data parallelism: replicas do the same. Any other plan is judged when it is given.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from fleet.constraints.engine_limits import ENGINES, TENSOR_ONLY, EngineParallelism
from fleet.hardware import GpuModel, SharingMode, node_gpus, tensor_domain
from fleet.memory import visible_bytes
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import ModelFigures
from fleet.plan_judgement import Judged, judge_possible
from fleet.plan_wish import PlanWish

NODES_WHEN_OPEN = 4
"""Nodes that are tried when nothing says how many GPUs there are."""
MOST_NODES = 64
"""Nodes of the largest replica that is proposed, however many GPUs are offered."""
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
    has_nvlink: bool = True

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of GPUs for which plans are proposed, ascending; those of a smaller offer are among them."""
        parts = {1 << power for power in range(self.node.bit_length()) if 1 << power <= self.node}
        nodes = range(self.node, min(self.gpus, self.node * MOST_NODES) + 1, self.node)
        return tuple(sorted(size for size in {*parts, *nodes} if size <= self.gpus))


def field_of(gpu: GpuModel, wish: PlanWish, node: int | None = None) -> Field:
    """The GPUs that the wish offers; without a number, up to four nodes."""
    size = node or node_gpus(gpu.name)
    linked = bool(gpu.nvlink_gb_per_second)
    if wish.sharing is SharingMode.MIG or wish.mig_profile:
        return Field(gpus=1, node=size, domain=1, has_nvlink=linked)
    domain = size if node else max(size, tensor_domain(gpu.name))
    return Field(gpus=wish.gpus or size * NODES_WHEN_OPEN, node=size, domain=domain, has_nvlink=linked)


def enumerate_plans(figures: ModelFigures, wish: PlanWish, gpus: int, field: Field) -> tuple[ParallelPlan, ...]:
    """Every plan over exactly so many GPUs, the preferred one first."""
    is_moe = figures.model.experts is not None
    long = wish.context_of(figures.model) >= LONG_CONTEXT_TOKENS
    plans = _plans(gpus, wish.engine, is_moe, long, field)
    many = figures.is_latent and is_moe and wish.concurrency >= MANY_SEQUENCES
    return plans if not many else tuple(sorted(plans, key=_latent_order))


def search(figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field) -> Iterator[Judged]:
    """Every candidate that may fit, judged, from the fewest GPUs up."""
    least = least_gpus(figures, gpu, wish, field)
    for gpus in field.counts:
        if gpus < least:
            continue
        for plan in enumerate_plans(figures, wish, gpus, field):
            judged = judge_possible(figures, plan, gpu, wish)
            if judged is not None:
                yield judged


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


@lru_cache(maxsize=4096)
def _plans(gpus: int, engine: str, is_moe: bool, long: bool, field: Field) -> tuple[ParallelPlan, ...]:
    known = ENGINES.get(engine, TENSOR_ONLY)
    found: list[ParallelPlan] = []
    for pipeline in _stage_counts(gpus, field) if known.pipeline else (1,):
        for context in (1, 2, 4) if long and known.context else (1,):
            stage, rest = divmod(gpus // pipeline, context)
            if rest == 0 and stage:
                found += _stages(stage, pipeline, context, known, is_moe=is_moe)
    fitting = (plan for plan in found if plan.gpus == gpus and plan.tensor <= field.domain)
    return tuple(sorted(fitting, key=lambda plan: _order(plan, field)))


def _stage_counts(gpus: int, field: Field) -> tuple[int, ...]:
    """Pipeline stages: one for each node or one for all; inside a node without NVLink any number that divides."""
    if gpus <= field.node:
        return (1,) if field.has_nvlink else _divisors(gpus)
    nodes = gpus // field.node
    inside = (1,) if field.has_nvlink else _divisors(field.node)
    return tuple(sorted({1, *(nodes * stages for stages in inside)}))


def _stages(
    stage: int, pipeline: int, context: int, known: EngineParallelism, *, is_moe: bool
) -> Iterator[ParallelPlan]:
    yield ParallelPlan(stage, pipeline, 1, 0, context)
    if not is_moe or not known.expert or stage * context == 1:
        return
    for ranks in _divisors(stage) if known.data else (1,):
        yield ParallelPlan(stage // ranks, pipeline, ranks, stage * context, context)


def _order(plan: ParallelPlan, field: Field) -> tuple[int, ...]:
    crosses = int(plan.stage_ranks > field.domain)
    return (crosses, plan.pipeline, plan.context, plan.data, plan.expert)


def _latent_order(plan: ParallelPlan) -> tuple[int, ...]:
    return (plan.pipeline, plan.context, -plan.data, -plan.expert)


@lru_cache(maxsize=1024)
def _divisors(number: int) -> tuple[int, ...]:
    return tuple(size for size in range(1, number + 1) if number % size == 0)
