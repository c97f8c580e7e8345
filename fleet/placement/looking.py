"""Which plans a place could take: the preferred one judged, and further ones, worked out once per kind of place.

Many pools differ in name, zone and price alone; what the planner says about them is the same. Places that differ in
the number of GPUs alone share what is said of each plan.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from fleet.hardware import GpuModel
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.placement.asking import on_shared_gpu
from fleet.placement.estimate import AtLoad, at_load, lengths_of
from fleet.placement.ground import ModelOption, Place
from fleet.plan_figures import ModelFigures, figures_of
from fleet.plan_judgement import Judged, judge, judge_possible
from fleet.plan_search import Field, enumerate_plans, field_of, least_gpus
from fleet.plan_wish import PlanWish, Reason
from fleet.serving import Serving
from fleet.spec import EngineName, Spec

GpuKind = tuple[str, str, str, str]
Kind = tuple[GpuKind, int, int]


def kind_of(place: Place) -> Kind:
    """Everything of a place that the planner looks at; a part of a GPU goes by the name of its instance."""
    shape = place.instance
    part = "" if shape.gpu_fraction == 1 else shape.name
    return (shape.gpu, part, place.sharing.value, place.mig_profile or ""), shape.gpus, place.nodes


@dataclass(frozen=True, slots=True)
class OnGpu:
    """One model of one engine version on one GPU or slice, however many of them there are; what was found stays."""

    spec: Spec
    engine: EngineName
    model: ModelOption
    gpu: GpuModel
    speed_gpu: GpuModel
    figures: ModelFigures
    _possible: dict[tuple[ParallelPlan, float | None], Judged | None] = field(default_factory=dict, compare=False)
    _loads: dict[ParallelPlan, AtLoad] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, spec: Spec, engine: EngineName, model: ModelOption, place: Place, wish: PlanWish) -> "OnGpu":
        """The GPU of a place."""
        figures = figures_of(model.model, model.quantization, wish.kv_dtype)
        return cls(spec, engine, model, place.gpu, place.speed_gpu, figures)

    def possible(self, plan: ParallelPlan, wish: PlanWish) -> Judged | None:
        """The plan judged, or ``None`` where a look says no; wishes differ in GPUs, instance and share of memory."""
        key = (plan, wish.gpu_memory_utilization)
        if key not in self._possible:
            self._possible[key] = judge_possible(self.figures, plan, self.gpu, wish)
        return self._possible[key]

    def at_load(self, plan: ParallelPlan, kv_dtype: str) -> AtLoad:
        """How fast a plan is under the manifest's load, and how many replicas that takes."""
        found = self._loads.get(plan)
        if found is None:
            option, objectives = self.model, self.spec.objectives
            on = (option.model, plan, self.speed_gpu, self.engine, option.quantization, kv_dtype)
            serving = Serving(*on, *lengths_of(objectives))
            found = self._loads[plan] = at_load(serving, objectives, self.spec.scaling)
        return found


@dataclass(frozen=True)
class Ground:
    """One model of one engine version on one kind of place."""

    on: OnGpu
    wish: PlanWish
    field: Field
    judged: Judged
    refusal: Reason | None
    """Why nothing of it can share a GPU, where that is so."""

    @cached_property
    def plans(self) -> tuple[Judged, ...]:
        """The plans that fit, the preferred one first; then over as many GPUs, then over more."""
        return (self.judged, *_further(self.on, self.wish, self.field, self.judged))

    @cached_property
    def words(self) -> str:
        """The preferred plan as a person reads it."""
        return str(self.judged.plan)

    @cached_property
    def unfit(self) -> Reason | None:
        """Why the preferred plan does not fit, or why that is not known."""
        judged = self.judged
        if judged.fits == "unknown":
            return _unknown(self.on.model, judged)
        reasons = judged.reasons(self.on.figures, self.on.gpu, self.wish) if judged.fits == "no" else ()
        return next(iter(reasons), None)

    def at_load(self, plan: ParallelPlan) -> AtLoad:
        """How fast a plan is under the manifest's load, and how many replicas that takes."""
        return self.on.at_load(plan, self.wish.kv_dtype)


def ground_of(on: OnGpu, place: Place, wish: PlanWish) -> Ground:
    """The ground with its preferred plan."""
    field = field_of(on.gpu, wish, place.instance.gpus)
    judged = _judged(on, wish, field)
    asked = on_shared_gpu(judged, on.figures, place, wish) if judged.fits == "yes" else wish
    refusal = asked if isinstance(asked, Reason) else None
    if isinstance(asked, PlanWish) and asked is not wish:
        judged, wish = judge(on.figures, judged.plan, on.gpu, asked), asked
    return Ground(on, wish, field, judged, refusal)


def _further(on: OnGpu, wish: PlanWish, field: Field, smallest_one: Judged) -> Iterator[Judged]:
    """Other plans that fit, for objectives that the preferred one misses: over as many GPUs, then over more."""
    if wish.is_explicit:
        return
    least = smallest_one.plan.gpus
    sizes = (least,) if on.spec.hardware is not None else tuple(size for size in field.counts if size >= least)
    for size in sizes:
        for plan in enumerate_plans(on.figures, wish, size, field):
            judged = on.possible(plan, wish)
            if judged is not None and judged.fits == "yes" and plan != smallest_one.plan:
                yield judged
                if size != least:
                    break


def _judged(on: OnGpu, wish: PlanWish, field: Field) -> Judged:
    """The given plan, the preferred one over the given GPUs, the smallest that fits, or the widest that fails."""
    if wish.is_explicit:
        return judge(on.figures, wish.explicit_plan, on.gpu, wish)
    if on.spec.hardware is not None:
        counts: tuple[int, ...] = (on.spec.hardware.gpus,)
    else:
        found = _smallest(on, wish, field)
        if found is not None:
            return found
        counts = field.counts[-1:]
    plans = [plan for size in counts for plan in enumerate_plans(on.figures, wish, size, field)]
    if not plans:
        return judge(on.figures, ParallelPlan(tensor=counts[0]), on.gpu, wish)
    judged = (on.possible(plan, wish) or judge(on.figures, plan, on.gpu, wish) for plan in plans)
    return min(judged, key=lambda item: (("yes", "unknown", "no").index(item.fits), len(item.forbidden), item.shortage))


def _smallest(on: OnGpu, wish: PlanWish, field: Field) -> Judged | None:
    """The preferred plan of the fewest GPUs that fits (`fleet.plan_search.smallest`, with what is known already)."""
    least = least_gpus(on.figures, on.gpu, wish, field)
    sizes = (size for size in field.counts if size >= least)
    found = (on.possible(plan, wish) for size in sizes for plan in enumerate_plans(on.figures, wish, size, field))
    return next((judged for judged in found if judged is not None and judged.fits == "yes"), None)


def _unknown(model: ModelOption, judged: Judged) -> Reason:
    missing = model.model.missing[0] if model.model.missing else judged.memory
    message = missing.message if isinstance(missing, Missing) else "a figure of the model is not known"
    return Reason("unknown", f"whether {model.id} fits is not known: {message}")
