"""Looks for the plan of one engine version on every place: it fits there, or the rule and numbers that reject it."""

from dataclasses import dataclass, replace

from fleet import hardware
from fleet.facts import Facts
from fleet.hardware import GpuModel
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.placement.decision import Rejection
from fleet.placement.estimate import Estimate, Serving, estimate, unmet
from fleet.placement.ground import ModelOption, Place, model_options, places
from fleet.plan_figures import ModelFigures, figures_of
from fleet.plan_judgement import Judged, judge
from fleet.plan_search import Field, enumerate_plans, field_of, smallest
from fleet.plan_wish import PlanWish, Reason
from fleet.prices import PriceTable
from fleet.prices import bundled as bundled_prices
from fleet.spec import EngineName, Parallelism, Spec


@dataclass(frozen=True, slots=True)
class Option:
    """A plan that fits on a place."""

    model: ModelOption
    place: Place
    judged: Judged
    nodes: int
    estimate: Estimate

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
        return memory.weights + memory.activation + memory.overhead + memory.wanted_bytes


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for one engine version."""

    options: tuple[Option, ...]
    rejections: tuple[Rejection, ...]
    considered: int


def search_hardware(spec: Spec, engine: EngineName, version: str, facts: Facts) -> Found | None:
    """Every place judged; ``None`` when no configuration of the model is known, so that nothing can be said."""
    models = model_options(spec, facts)
    if not models or models[0].id != spec.model.id:
        return None
    prices = facts.prices or bundled_prices()
    options: list[Option] = []
    rejections: list[Rejection] = []
    looked = 0
    for model in models:
        for place in places(spec, facts):
            looked += 1
            found = _look(spec, model, place, engine, version, prices)
            if isinstance(found, Option):
                options.append(found)
            else:
                rejections.append(found)
    if not looked:
        rejections.append(_nowhere(spec, engine, version, facts))
    return Found(tuple(options), tuple(rejections), looked)


def _look(
    spec: Spec, model: ModelOption, place: Place, engine: EngineName, version: str, prices: PriceTable
) -> Option | Rejection:
    gpu = hardware.gpu(place.instance.gpu)
    wish = wish_of(spec, place, engine, version, model.quantization)
    figures = figures_of(model.model, model.quantization, wish.kv_dtype)
    field = field_of(gpu, wish, place.instance.gpus)
    judged = _judged(spec, figures, gpu, wish, field)
    nodes = -(-judged.plan.gpus // place.instance.gpus)
    reasons = list(judged.reasons(figures, gpu, wish)) if judged.fits == "no" else []
    if judged.fits == "unknown":
        reasons = [_unknown(model, judged)]
    if not reasons and nodes > place.nodes:
        message = f"{judged.plan} takes {nodes} nodes; {place.nodes} {place.instance.name} can be had for one replica"
        reasons = [Reason("nodes", message, {"nodes": nodes, "available": place.nodes})]
    if reasons:
        return _rejection(reasons[0], model, place, engine, version, judged)
    serving = Serving(
        model.model,
        judged.plan,
        gpu,
        engine,
        model.quantization,
        wish.kv_dtype,
        place.instance.name,
        nodes,
        place.purchase,
    )
    found = estimate(serving, spec.objectives, spec.scaling, prices)
    missed = next(unmet(found, spec.objectives, spec.scaling), None)
    if missed is not None:
        return _rejection(missed, model, place, engine, version, judged)
    return Option(model, place, judged, nodes, found)


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


def wish_of(spec: Spec, place: Place, engine: EngineName, version: str, quantization: str | None) -> PlanWish:
    """The manifest's wish on one place; one request at full length must fit, more is a matter of speed."""
    batch, objectives = spec.batch, spec.objectives
    wish = PlanWish(
        gpu=place.instance.gpu,
        gpus=place.instance.gpus * place.nodes if spec.hardware is None else spec.hardware.gpus,
        instance=place.instance.name,
        engine=engine,
        engine_version=version,
        quantization=quantization,
        kv_dtype=batch.kv_cache_dtype if batch else "auto",
        context_tokens=batch.max_model_len if batch else None,
        input_tokens=objectives.input_tokens if objectives else None,
        output_tokens=objectives.output_tokens if objectives else None,
        max_num_seqs=batch.max_num_seqs if batch and "max_num_seqs" in batch.model_fields_set else None,
        max_num_batched_tokens=(
            batch.max_num_batched_tokens if batch and "max_num_batched_tokens" in batch.model_fields_set else None
        ),
        sharing=place.sharing,
        mig_profile=place.mig_profile,
    )
    return wish if not has_plan(spec) else _with_plan(wish, spec.parallelism)


def has_plan(spec: Spec) -> bool:
    """Whether the manifest says how a replica is split."""
    return "parallelism" in spec.model_fields_set


def _with_plan(wish: PlanWish, given: Parallelism) -> PlanWish:
    return replace(
        wish,
        tensor=given.tensor,
        pipeline=given.pipeline,
        data=given.data,
        expert=given.expert,
        context_parallel=given.context,
    )


def _unknown(model: ModelOption, judged: Judged) -> Reason:
    missing = model.model.missing[0] if model.model.missing else judged.memory
    message = missing.message if isinstance(missing, Missing) else "a figure of the model is not known"
    return Reason("unknown", f"whether {model.id} fits is not known: {message}")


def _nowhere(spec: Spec, engine: EngineName, version: str, facts: Facts) -> Rejection:
    pools = ", ".join(f"{pool.name} ({pool.instance_type}, {pool.purchase})" for pool in facts.pools) or "none"
    wished = spec.hardware
    what = f"{wished.instance_type} ({wished.purchase})" if wished else "any instance"
    return Rejection(engine, version, "no-pool", f"no pool of the environment offers {what}; pools: {pools}")


def _rejection(
    reason: Reason, model: ModelOption, place: Place, engine: EngineName, version: str, judged: Judged
) -> Rejection:
    found = Rejection.of(
        reason, engine=engine, version=version, instance_type=place.instance.name, plan=str(judged.plan)
    )
    return replace(found, model_id=model.id)
