"""The planner: does a model fit, how is it split, what does it hold, and why not otherwise.

``plan(model, wish)`` judges exactly the given plan, or proposes the one that takes the fewest GPUs.
"""

from dataclasses import replace
from typing import Any

from fleet import hardware
from fleet.batch_advice import batch_settings, moe_advice
from fleet.constraints.kernels import kernel_notes
from fleet.hardware import GpuModel, SharingMode
from fleet.kv_cache import cross_bytes_per_sequence, kv_bytes_per_token, kv_sliding, state_bytes_per_sequence
from fleet.kv_tiers import Tier, tiers
from fleet.memory import Memory
from fleet.memory_constants import constants_for
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_answer import Alternative, ModelSize, PlanAnswer
from fleet.plan_counterfactual import counterfactuals, largest_context
from fleet.plan_figures import ModelFigures, figures_of
from fleet.plan_hardware import ground_of
from fleet.plan_judgement import Judged, judge, judge_possible
from fleet.plan_pools import disaggregation_document
from fleet.plan_search import Field, enumerate_plans, smallest
from fleet.plan_speed import SpeedWish, instance_for, speed_document
from fleet.plan_wish import PlanWish, Reason, gpus_in_words
from fleet.prices import bundled
from fleet.weights import parameters_active, parameters_total, weights_bytes_total

MAX_ALTERNATIVES = 8


def plan(model: Model, wish: PlanWish, *, speed: SpeedWish | None = None) -> PlanAnswer:
    """The answer to a wish; raises `WishError` or `fleet.hardware.UnknownHardware` for one that can't be read."""
    wish.check()
    speed = speed or SpeedWish()
    ground = ground_of(model, wish, speed.prices or bundled())
    gpu, field, wish = ground.gpu, ground.field, ground.wish
    figures = figures_of(model, wish.quantization, wish.kv_dtype)
    explicit = wish.is_explicit
    chosen = judge(figures, wish.explicit_plan, gpu, wish) if explicit else _proposed(figures, gpu, wish, field)
    offered = _offered(chosen, wish)
    fits = "no" if offered else chosen.fits
    fewest = smallest(figures, gpu, wish, field) if explicit else chosen if fits == "yes" else None
    nodes = -(-chosen.plan.gpus // field.node)
    memory = None if isinstance(chosen.memory, Missing) else chosen.memory
    size = model_size(model, wish)
    return PlanAnswer(
        model=model,
        size=size,
        wish=wish,
        gpu=gpu,
        plan=chosen.plan,
        nodes=nodes,
        fits=fits,
        reasons=(*offered, *chosen.reasons(figures, gpu, wish)) if fits == "no" else (),
        memory=memory,
        constants=constants_for(wish.engine, wish.engine_version).constants,
        largest_context=_largest(figures, chosen.plan, memory),
        smallest_gpus=None if fewest is None else fewest.plan.gpus,
        alternatives=_alternatives(figures, gpu, wish, field, chosen),
        counterfactuals=counterfactuals(figures, gpu, wish, field, chosen) if fits == "no" else (),
        notes=(*((ground.note,) if ground.note else ()), *_notes(figures, gpu, wish, chosen, nodes, field)),
        advice=_advice(figures, gpu, wish, chosen.plan, memory, size, speed),
        speed=speed_document(model, chosen.plan, gpu, wish, nodes, speed),
    )


def smallest_gpus(model: Model, wish: PlanWish) -> int | None:
    """The fewest of the offered GPUs on which some plan fits; ``None`` when none does or a figure is missing."""
    wish.check()
    ground = ground_of(model, wish, bundled())
    figures = figures_of(model, wish.quantization, wish.kv_dtype)
    found = smallest(figures, ground.gpu, ground.wish, ground.field)
    return None if found is None else found.plan.gpus


def model_size(model: Model, wish: PlanWish) -> ModelSize:
    """What the model takes, however it is split."""
    sliding = kv_sliding(model, wish.kv_dtype)
    figures = {
        "parameters_total": parameters_total(model),
        "parameters_active": parameters_active(model),
        "weights_bytes_total": weights_bytes_total(model, wish.quantization),
        "kv_bytes_per_token": kv_bytes_per_token(model, wish.kv_dtype),
    }
    known = {name: None if isinstance(value, Missing) else value for name, value in figures.items()}
    missing = [value for value in figures.values() if isinstance(value, Missing)]
    return ModelSize(
        **known,
        kv_sliding=None if sliding is None else (sliding.bytes_per_token, sliding.window_tokens),
        state_bytes_per_sequence=state_bytes_per_sequence(model),
        cross_bytes_per_sequence=cross_bytes_per_sequence(model, wish.kv_dtype),
        missing=tuple(dict.fromkeys((*model.missing, *missing))),
    )


def _largest(figures: ModelFigures, item: ParallelPlan, memory: Memory | None) -> int | None:
    known = memory is not None and memory.sequence_bytes is not None
    return largest_context(figures, item, memory) if memory is not None and known else None


def _proposed(figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field) -> Judged:
    """The preferred plan of the fewest GPUs; where none fits, the nearest miss."""
    found = smallest(figures, gpu, wish, field)
    return found or _nearest(figures, gpu, wish, field)


def _nearest(figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field) -> Judged:
    judged = [
        judge(figures, item, gpu, wish) for gpus in field.counts for item in enumerate_plans(figures, wish, gpus, field)
    ]
    return min(judged, key=lambda item: (item.fits == "no", len(item.forbidden), item.shortage, item.plan.gpus))


def _offered(chosen: Judged, wish: PlanWish) -> tuple[Reason, ...]:
    if wish.gpus is None or chosen.plan.gpus <= wish.gpus:
        return ()
    offered = "1 is" if wish.gpus == 1 else f"{wish.gpus} are"
    message = f"{chosen.plan} takes {gpus_in_words(chosen.plan.gpus)}; {offered} offered"
    return (Reason("gpus", message, {"gpus": chosen.plan.gpus, "offered": wish.gpus}),)


def _alternatives(
    figures: ModelFigures, gpu: GpuModel, wish: PlanWish, field: Field, chosen: Judged
) -> tuple[Alternative, ...]:
    """The preferred plan for each further number of GPUs up to a node, and other plans over as many GPUs."""
    open_wish = replace(wish, tensor=None, pipeline=None, expert=None, data=None, context_parallel=None)
    found: list[Alternative] = []
    for gpus in _counts(field, chosen.plan.gpus):
        same = gpus == chosen.plan.gpus
        for item in enumerate_plans(figures, open_wish, gpus, field):
            judged = judge_possible(figures, item, gpu, open_wish)
            if not judged or judged.fits != "yes" or item == chosen.plan:
                continue
            if isinstance(judged.memory, Memory):
                found.append(_alternative(judged.memory, item, field))
                if not same:
                    break
    return tuple(found[:MAX_ALTERNATIVES])


def _counts(field: Field, chosen: int) -> tuple[int, ...]:
    return tuple(size for size in field.counts if size >= chosen)[:4]


def _alternative(memory: Memory, item: ParallelPlan, field: Field) -> Alternative:
    nodes = -(-item.gpus // field.node)
    where = "one node, no EFA needed" if nodes == 1 else f"{nodes} nodes, needs EFA"
    return Alternative(item, memory.sequences, memory.kv_tokens, where)


def _notes(
    figures: ModelFigures, gpu: GpuModel, wish: PlanWish, chosen: Judged, nodes: int, field: Field
) -> tuple[str, ...]:
    constants = constants_for(wish.engine, wish.engine_version)
    notes = [constants.note] if constants.note else []
    notes += kernel_notes(figures, gpu)
    notes += _network_notes(gpu, wish, chosen.plan, nodes)
    if kv_sliding(figures.model, wish.kv_dtype) is not None:
        notes.append(
            "sliding layers are counted by their window: with the hybrid cache manager off they keep every token"
        )
    if figures.model.is_generic:
        notes.append(_generic_note(figures.model))
    if wish.sharing in (SharingMode.MPS, SharingMode.TIME_SLICING):
        notes.append(f"speed is that of the GPU alone: what neighbours take by {wish.sharing.value} was not measured")
    if not wish.has_context:
        notes.append(f"no context was given: {wish.context_of(figures.model)} tokens are taken")
    if not wish.is_explicit and wish.gpus and wish.gpus not in field.counts:
        notes.append(
            f"plans over {gpus_in_words(wish.gpus)} are not proposed (parts of a node, or whole nodes); "
            "give sizes to judge one"
        )
    if gpu.visible_memory_gib is None and gpu.memory_mib is not None:
        notes.append(f"the memory of {gpu.name} is what the cloud reports; what CUDA sees was not measured")
    return tuple(notes)


def _generic_note(model: Model) -> str:
    keys = ", ".join(dict.fromkeys(item.key for item in model.missing))
    found = f"these keys are missing: {keys}" if keys else "all keys were present"
    return f"{model.architecture} is not known: read as a plain transformer, {found}"


def _network_notes(gpu: GpuModel, wish: PlanWish, item: ParallelPlan, nodes: int) -> list[str]:
    if item.gpus == 1:
        return []
    link = "NVLink" if gpu.nvlink_gb_per_second else "PCIe"
    if nodes == 1:
        return [f"one node: tensor parallelism goes over {link}, EFA is not needed"]
    if item.stage_ranks > hardware.tensor_domain(gpu.name):
        notes = [f"a stage of {item.stage_ranks} ranks leaves the node: its collectives need EFA"]
    else:
        notes = [f"{nodes} nodes: pipeline stages pass activations over EFA, tensor parallelism stays on {link}"]
    if wish.instance and not hardware.instance(wish.instance).supports_efa:
        notes.append(f"{wish.instance} has no EFA: traffic between nodes goes over TCP")
    return notes


def _advice(
    figures: ModelFigures,
    gpu: GpuModel,
    wish: PlanWish,
    item: ParallelPlan,
    memory: Memory | None,
    size: ModelSize,
    speed: SpeedWish,
) -> dict[str, Any]:
    return {
        "batch": None if memory is None else batch_settings(figures, wish, gpu, memory),
        "experts": moe_advice(figures, item, wish, gpu, memory),
        "disaggregation": disaggregation_document(figures.model, item, gpu, wish, speed),
        "kv_tiers": _tiers(gpu, wish, item, memory, size),
    }


def _tiers(
    gpu: GpuModel, wish: PlanWish, item: ParallelPlan, memory: Memory | None, size: ModelSize
) -> tuple[Tier, ...] | None:
    """Host and remote tiers of the KV cache; ``None`` where cache, model or host are not known."""
    instance = instance_for(item, gpu, wish)
    if instance is None or memory is None or memory.kv_tokens is None or not size.kv_bytes_per_token:
        return None
    host = instance.memory_mib * hardware.BYTES_PER_MIB * item.gpus // instance.gpus
    return tiers(
        kv_tokens=memory.kv_tokens,
        kv_bytes_per_token=size.kv_bytes_per_token,
        host_bytes_per_replica=host,
        working_set_tokens=wish.working_set_tokens,
        closed_paths=wish.closed_paths,
    )
