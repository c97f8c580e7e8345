"""Looks for the plan of one engine version on every place: it fits there, or the rule and numbers that reject it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fleet.facts import Facts
from fleet.hardware import GpuModel
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.placement.asking import WITH_NEIGHBOURS, on_shared_gpu, wish_of
from fleet.placement.decision import Rejection
from fleet.placement.estimate import Estimate, Serving, estimate, unmet
from fleet.placement.ground import ModelOption, Place, model_options, places, pool_refusal
from fleet.plan_figures import ModelFigures, figures_of
from fleet.plan_judgement import Judged, judge, judge_possible
from fleet.plan_search import Field, enumerate_plans, field_of, smallest
from fleet.plan_wish import PlanWish, Reason
from fleet.pool_filling import Load
from fleet.pool_match import too_many
from fleet.prices import PriceTable
from fleet.prices import bundled as bundled_prices
from fleet.spec import EngineName, Spec


@dataclass(frozen=True, slots=True)
class Option:
    """A plan that fits on a place."""

    model: ModelOption
    place: Place
    judged: Judged
    nodes: int
    estimate: Estimate
    memory_share: float | None = None
    """Of a GPU that others use too: the replica is told to take no more."""

    @property
    def plan(self) -> ParallelPlan:
        """The plan that fits."""
        return self.judged.plan

    @property
    def replica_bytes(self) -> int | None:
        """What a replica takes of a shared GPU, without its context and graphs."""
        memory = self.judged.memory
        if isinstance(memory, Missing):
            return None
        cache = memory.wanted_bytes if self.memory_share is None else memory.kv_cache
        return memory.weights + memory.activation + memory.overhead + cache


@dataclass(frozen=True, slots=True)
class Miss:
    """A plan that memory or a constraint forbids, with all that is needed to ask what would make it fit."""

    judged: Judged
    figures: ModelFigures
    gpu: GpuModel
    wish: PlanWish
    field: Field


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one engine version."""

    options: tuple[Option, ...]
    rejections: tuple[Rejection, ...]
    considered: int
    nearest: Miss | None = None
    """Of the manifest's own model: the plan that misses by the fewest bytes."""


@dataclass(frozen=True, slots=True)
class Search:
    """One engine version looking for hardware."""

    spec: Spec
    engine: EngineName
    version: str
    prices: PriceTable

    def rejection(self, reason: Reason, place: Place, model: ModelOption | None = None, plan: str = "") -> Rejection:
        """A place that is not taken."""
        return Rejection(
            self.engine,
            self.version,
            reason.rule,
            reason.message,
            place.instance.name,
            plan or None,
            None if model is None else model.id,
            dict(reason.evidence),
            None if place.pool is None else place.pool.name,
        )


def search_hardware(spec: Spec, engine: EngineName, version: str, facts: Facts) -> Found | None:
    """Every place judged; ``None`` when no configuration of the model is known, so that nothing can be said."""
    models = model_options(spec, facts)
    if not models or models[0].id != spec.model.id:
        return None
    if spec.pools is not None:
        return _both_sides(spec, engine, version, facts)
    search = Search(spec, engine, version, facts.prices or bundled_prices())
    options: list[Option] = []
    rejections = list(_closed_pools(search, facts))
    looked, nearest = len(rejections), None
    for model in models:
        for place in places(spec, facts):
            looked += 1
            found = _look(search, model, place)
            if isinstance(found, Option):
                options.append(found)
                continue
            rejection, miss = found
            rejections.append(rejection)
            if miss is not None and not model.note:
                nearest = miss if nearest is None or miss.judged.shortage < nearest.judged.shortage else nearest
    if not looked:
        rejections.append(_nowhere(spec, engine, version))
    return Found(tuple(options), tuple(rejections), looked, nearest)


def _both_sides(spec: Spec, engine: EngineName, version: str, facts: Facts) -> Found | None:
    """Separate prefill and decode as they are written: ``None`` where both sides fit, else why one does not."""
    looked = 0
    for name, side in (("prefill", spec.pools.prefill), ("decode", spec.pools.decode)) if spec.pools else ():
        update = {"hardware": side.hardware, "parallelism": side.parallelism, "pools": None, "objectives": None}
        found = search_hardware(spec.model_copy(update=update), engine, version, facts)
        if found is None:
            return None
        looked += found.considered
        if not found.options:
            rejections = tuple(replace(item, reason=f"{name}: {item.reason}") for item in found.rejections)
            return Found((), rejections, looked, found.nearest)
    return None


def _closed_pools(search: Search, facts: Facts) -> Iterator[Rejection]:
    for pool in facts.pools:
        reason = pool_refusal(search.spec, pool, facts)
        if reason is not None:
            place = Place(pool.instance, pool.purchase, pool.sharing.mode, 0, pool)
            yield search.rejection(reason, place)


def _look(search: Search, model: ModelOption, place: Place) -> Option | tuple[Rejection, Miss | None]:
    """The first plan of a place that fits and meets the objectives, or why the preferred one is not taken."""
    spec = search.spec
    gpu, wish = place.gpu, wish_of(spec, place, search.engine, search.version, model.quantization)
    figures = figures_of(model.model, model.quantization, wish.kv_dtype)
    field = field_of(gpu, wish, place.instance.gpus)
    judged = _judged(spec, figures, gpu, wish, field)
    reason = _unfit(judged, figures, gpu, wish, model) or _too_many_nodes(judged, place)
    if reason is not None:
        miss = Miss(judged, figures, gpu, wish, field) if judged.fits == "no" else None
        return search.rejection(reason, place, model, str(judged.plan)), miss
    asked = on_shared_gpu(judged, figures, place, wish)
    if isinstance(asked, Reason):
        return search.rejection(asked, place, model, str(judged.plan)), None
    if asked is not wish:
        judged, wish = judge(figures, judged.plan, gpu, asked), asked
    option = _option(search, model, place, judged, wish)
    missed = _missed(spec, option)
    if missed is None:
        return option
    for other in _further(spec, figures, gpu, wish, field, judged):
        option = _option(search, model, place, other, wish)
        if _missed(spec, option) is None:
            return option
    return search.rejection(missed, place, model, str(judged.plan)), None


def _unfit(judged: Judged, figures: ModelFigures, gpu: GpuModel, wish: PlanWish, model: ModelOption) -> Reason | None:
    if judged.fits == "unknown":
        return _unknown(model, judged)
    return next(iter(judged.reasons(figures, gpu, wish)), None) if judged.fits == "no" else None


def _too_many_nodes(judged: Judged, place: Place) -> Reason | None:
    nodes = -(-judged.plan.gpus // place.instance.gpus)
    if nodes <= place.nodes:
        return None
    message = f"{judged.plan} takes {nodes} nodes; {place.nodes} {place.instance.name} can be had for one replica"
    return Reason("nodes", message, {"nodes": nodes, "available": place.nodes})


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


def _option(search: Search, model: ModelOption, place: Place, judged: Judged, wish: PlanWish) -> Option:
    spec, plan = search.spec, judged.plan
    share = wish.gpu_memory_utilization if place.sharing in WITH_NEIGHBOURS else None
    serving = Serving(
        model=model.model,
        plan=plan,
        gpu=place.speed_gpu,
        engine=search.engine,
        quantization=model.quantization,
        kv_dtype=wish.kv_dtype,
        instance_type=place.instance.name,
        node_part=place.node_part(plan.gpus) * (share or 1.0),
        purchase=place.purchase,
    )
    found = estimate(serving, spec.objectives, spec.scaling, search.prices)
    return Option(model, place, judged, -(-plan.gpus // place.instance.gpus), found, share)


def _missed(spec: Spec, option: Option) -> Reason | None:
    """The first objective that it misses, or the pool that has too few nodes for all replicas."""
    reason = next(unmet(option.estimate, spec.objectives, spec.scaling), None)
    pool = option.place.pool
    if reason is not None or pool is None or pool.max_nodes is None:
        return reason
    load = Load("the deployment", option.plan.gpus, option.estimate.replicas, option.replica_bytes or 0)
    return too_many(pool, (), load)


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


def _unknown(model: ModelOption, judged: Judged) -> Reason:
    missing = model.model.missing[0] if model.model.missing else judged.memory
    message = missing.message if isinstance(missing, Missing) else "a figure of the model is not known"
    return Reason("unknown", f"whether {model.id} fits is not known: {message}")


def _nowhere(spec: Spec, engine: EngineName, version: str) -> Rejection:
    wished = spec.hardware
    what = f"{wished.instance_type} ({wished.purchase})" if wished else "any instance"
    return Rejection(engine, version, "no-pool", f"no instance is known as {what}")
