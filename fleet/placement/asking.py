"""What a manifest asks of the planner on one place."""

import math
from dataclasses import replace

from fleet.hardware import SharingMode
from fleet.memory import Memory
from fleet.placement.ground import Place
from fleet.placement.scoring_data import weights
from fleet.plan_figures import ModelFigures
from fleet.plan_judgement import Judged, judge
from fleet.plan_wish import PlanWish, Reason
from fleet.spec import EngineName, Parallelism, Spec

WITH_NEIGHBOURS = (SharingMode.MPS, SharingMode.TIME_SLICING)
"""Ways of sharing in which every process sees the whole memory, and has to leave its neighbours' part alone."""
SHARED_SEQUENCES = 8
"""For which a replica on a shared GPU keeps room where the manifest says nothing."""


def wish_of(spec: Spec, place: Place, engine: EngineName, version: str, quantization: str | None) -> PlanWish:
    """The manifest's wish on one place; one request at full length must fit, more is a matter of speed."""
    batch, objectives = spec.batch, spec.objectives
    wish = PlanWish(
        gpu=place.instance.gpu,
        gpus=_offered(spec, place),
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
        gpu_memory_utilization=_written_share(spec),
        sharing=place.sharing,
        mig_profile=place.mig_profile,
    )
    return wish if not has_plan(spec) else _with_plan(wish, spec.parallelism)


def _offered(spec: Spec, place: Place) -> int:
    """GPUs of one replica: a shared GPU is never joined with another one."""
    if spec.hardware is not None:
        return spec.hardware.gpus
    return place.instance.gpus * place.nodes if place.sharing is SharingMode.EXCLUSIVE else 1


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


def on_shared_gpu(judged: Judged, figures: ModelFigures, place: Place, wish: PlanWish) -> PlanWish | Reason:
    """The wish with the share of memory that a replica needs beside its neighbours, or why there is none."""
    memory = judged.memory
    if place.sharing not in WITH_NEIGHBOURS or not isinstance(memory, Memory) or wish.gpu_memory_utilization:
        return wish
    if wish.engine not in weights().share_of_all:
        message = (
            f"{wish.engine} takes a share of what is free when it starts, so what it leaves to its neighbours is "
            f"not fixed; take sharing 'exclusive' or 'mig'"
        )
        return Reason("sharing", message, {"sharing": place.sharing.value})
    wanted = (memory.sequence_bytes or 0) * (wish.max_num_seqs or SHARED_SEQUENCES)
    beside = 0 if wish.engine == EngineName.SGLANG else memory.activation
    share = math.ceil(100 * (memory.weights + memory.overhead + beside + wanted) / memory.visible) / 100
    smaller = replace(wish, gpu_memory_utilization=min(share, memory.settings.utilization))
    fits = judge(figures, judged.plan, place.gpu, smaller).fits == "yes"
    return smaller if fits else wish


def _written_share(spec: Spec) -> float | None:
    """The share that the manifest grants."""
    return None if spec.hardware is None else spec.hardware.memory_share
