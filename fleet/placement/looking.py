"""Which plans a place could take: the preferred one judged, and further ones, worked out once per kind of place.

Many pools differ in name, zone and price alone; what the planner says about them is the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from fleet.hardware import GpuModel
from fleet.parallel_plan import ParallelPlan
from fleet.placement.asking import on_shared_gpu, wish_of
from fleet.placement.estimate import AtLoad, Serving, at_load
from fleet.placement.ground import ModelOption, Place
from fleet.plan_figures import ModelFigures, figures_of
from fleet.plan_judgement import Judged, judge, judge_possible
from fleet.plan_search import Field, enumerate_plans, field_of, smallest
from fleet.plan_wish import PlanWish, Reason
from fleet.spec import EngineName, Spec


def kind_of(place: Place) -> tuple[object, ...]:
    """Everything of a place that the planner looks at."""
    shape, pool = place.instance, place.pool
    profile = None if pool is None else pool.mig_profile
    return shape.gpu, shape.gpu_fraction, shape.gpus, place.nodes, place.sharing, profile


@dataclass(frozen=True)
class Ground:
    """One model of one engine version on one kind of place."""

    spec: Spec
    engine: EngineName
    model: ModelOption
    gpu: GpuModel
    speed_gpu: GpuModel
    wish: PlanWish
    figures: ModelFigures
    field: Field
    judged: Judged
    refusal: Reason | None
    """Why nothing of it can share a GPU, where that is so."""

    @cached_property
    def plans(self) -> tuple[Judged, ...]:
        """The plans that fit, the preferred one first; then over as many GPUs, then over more."""
        return (self.judged, *_further(self.spec, self.figures, self.gpu, self.wish, self.field, self.judged))

    @cached_property
    def _loads(self) -> dict[ParallelPlan, AtLoad]:
        return {}

    def at_load(self, plan: ParallelPlan) -> AtLoad:
        """How fast a plan is under the manifest's load, and how many replicas that takes."""
        found = self._loads.get(plan)
        if found is None:
            option, dtype = self.model, self.wish.kv_dtype
            serving = Serving(option.model, plan, self.speed_gpu, self.engine, option.quantization, dtype)
            found = self._loads[plan] = at_load(serving, self.spec.objectives, self.spec.scaling)
        return found


def ground_of(spec: Spec, engine: EngineName, version: str, model: ModelOption, place: Place) -> Ground:
    """The ground with its preferred plan."""
    gpu, wish = place.gpu, wish_of(spec, place, engine, version, model.quantization)
    figures = figures_of(model.model, model.quantization, wish.kv_dtype)
    field = field_of(gpu, wish, place.instance.gpus)
    judged = _judged(spec, figures, gpu, wish, field)
    asked = on_shared_gpu(judged, figures, place, wish) if judged.fits == "yes" else wish
    refusal = asked if isinstance(asked, Reason) else None
    if isinstance(asked, PlanWish) and asked is not wish:
        judged, wish = judge(figures, judged.plan, gpu, asked), asked
    return Ground(spec, engine, model, gpu, place.speed_gpu, wish, figures, field, judged, refusal)


def _further(
    spec: Spec, figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field, smallest_one: Judged
) -> Iterator[Judged]:
    """Other plans that fit, for objectives that the preferred one misses: over as many GPUs, then over more."""
    if wish.is_explicit:
        return
    least = smallest_one.plan.gpus
    sizes = (least,) if spec.hardware is not None else tuple(size for size in field.counts if size >= least)
    for size in sizes:
        for plan in enumerate_plans(figures, wish, size, field):
            judged = judge_possible(figures, plan, gpu, wish)
            if judged is not None and judged.fits == "yes" and plan != smallest_one.plan:
                yield judged
                if size != least:
                    break


def _judged(spec: Spec, figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field) -> Judged:
    """The given plan, the preferred one over the given GPUs, the smallest that fits, or the widest that fails."""
    if wish.is_explicit:
        return judge(figures, wish.explicit_plan, gpu, wish)
    if spec.hardware is not None:
        counts: tuple[int, ...] = (spec.hardware.gpus,)
    else:
        found = smallest(figures, gpu, wish, field)
        if found is not None:
            return found
        counts = field.counts[-1:]
    judged = [
        judge(figures, plan, gpu, wish) for size in counts for plan in enumerate_plans(figures, wish, size, field)
    ]
    if not judged:
        return judge(figures, ParallelPlan(tensor=counts[0]), gpu, wish)
    return min(judged, key=lambda item: (("yes", "unknown", "no").index(item.fits), len(item.forbidden), item.shortage))
