"""Speed, cold start and cost of a plan, as the answer's document spells them."""

from dataclasses import dataclass
from typing import Any

from fleet import hardware
from fleet.cold_start import ColdStartWish, Replica, cold_start_of
from fleet.cold_start_data import weight_source
from fleet.cost import Cost, cost_of
from fleet.gpu_parts import slice_of
from fleet.hardware import GpuModel, InstanceType
from fleet.latency import Latency, latency_of
from fleet.latency_interval import Interval
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_wish import PlanWish
from fleet.prices import PriceTable
from fleet.prices import bundled as bundled_prices
from fleet.serving import USUAL_TOKENS, Serving
from fleet.sharing import profile_of
from fleet.start_options import TARGET_SECONDS, StartOption, start_options
from fleet.throughput import Throughput, throughput_of
from fleet.weights import weights_bytes_total

DEFAULT_SOURCE = "fsx-lustre"
DEFAULT_LUSTRE = (4.8, 1000.0)
"""TiB and MB/s per TiB of the file system that is taken where nothing is said: 4.8 GB/s."""

COST_KEYS = (
    *("instance_type", "purchase", "nodes", "gpu_share", "usd_per_hour", "usd_per_hour_of_share"),
    *("usd_per_million_output_tokens", "priced_as_part_of", "priced_on", "is_estimate", "source", "reason"),
)


@dataclass(frozen=True, slots=True)
class SpeedWish:
    """What cold start and cost are worked out with."""

    prices: PriceTable | None = None
    """``None`` = the bundled table."""
    purchase: str = "on-demand"
    cold_start: ColdStartWish | None = None
    """``None`` = a new node, the image pulled, weights from FSx for Lustre."""


def speed_document(
    model: Model, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish, nodes: int, speed: SpeedWish
) -> dict[str, Any]:
    """The keys ``latency``, ``throughput_tokens_per_second``, ``cold_start_...`` and ``cost``."""
    serving = serving_of(model, plan, gpu, wish)
    throughput = throughput_of(serving)
    return {
        "latency": latency_document(latency_of(serving, wish.concurrency)),
        "throughput_tokens_per_second": throughput_document(throughput),
        **_cold_start(model, plan, gpu, wish, nodes, speed),
        "cost": cost_document(plan_cost(plan, gpu, wish, speed, throughput.total)),
    }


def serving_of(model: Model, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish) -> Serving:
    """The plan as the wish serves it."""
    seen, lengths = _as_seen(gpu, wish), request_lengths(wish, model)
    return Serving(model, plan, seen, wish.engine, wish.quantization, wish.kv_dtype, *lengths)


def request_lengths(wish: PlanWish, model: Model) -> tuple[int, int]:
    """Input and output tokens of a request: as asked, else what the context leaves, else 1024 each."""
    if wish.input_tokens is not None:
        left = USUAL_TOKENS if wish.context_tokens is None else wish.context_tokens - wish.input_tokens
        usual = max(1, min(USUAL_TOKENS, left))
        return wish.input_tokens, usual if wish.output_tokens is None else wish.output_tokens
    if wish.output_tokens is not None:
        return max(
            1, (wish.context_tokens or wish.output_tokens + USUAL_TOKENS) - wish.output_tokens
        ), wish.output_tokens
    context = wish.context_of(model) if wish.has_context else 2 * USUAL_TOKENS
    output = min(USUAL_TOKENS, context // 2)
    return max(1, context - output), max(1, output)


def _as_seen(gpu: GpuModel, wish: PlanWish) -> GpuModel:
    """The GPU as fast as the plan has it; of a slice that the GPU lacks, nothing is known."""
    if wish.mig_profile is None:
        return gpu
    if any(item.name == wish.mig_profile for item in gpu.mig_profiles):
        return slice_of(gpu, wish.mig_profile)
    unknown = {"memory_bandwidth_gb_per_second": None, "bf16_tflops": None}
    return gpu.model_copy(update={"name": f"{gpu.name} {wish.mig_profile}", **unknown})


def slices_per_gpu(gpu: GpuModel, wish: PlanWish) -> int:
    """How many slices like the wished one share a GPU; 1 without slices."""
    known = any(item.name == wish.mig_profile for item in gpu.mig_profiles)
    return profile_of(gpu, wish.mig_profile).per_gpu if known and wish.mig_profile else 1


def instance_for(plan: ParallelPlan, gpu: GpuModel, wish: PlanWish) -> InstanceType | None:
    """The instance that is priced: the one asked for, else the smallest that holds the plan, else the largest."""
    if wish.instance is not None:
        return hardware.instance(wish.instance)
    known = hardware.instances_with(gpu.name)
    return next((item for item in known if item.gpus >= plan.gpus), known[-1] if known else None)


def latency_document(found: Latency) -> dict[str, Any]:
    """The keys of ``latency``."""
    return {
        "tpot_seconds": interval_document(found.tpot),
        "ttft_seconds": interval_document(found.ttft),
        "basis": found.basis,
        "reasons": found.reasons,
    }


def throughput_document(found: Throughput) -> dict[str, Any]:
    """The keys of ``throughput_tokens_per_second``."""
    return {
        "total": interval_document(found.total),
        "per_gpu": interval_document(found.per_gpu),
        "concurrency": found.concurrency,
        "basis": found.basis,
        "reasons": found.reasons,
    }


def _cold_start(
    model: Model, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish, nodes: int, speed: SpeedWish
) -> dict[str, Any]:
    weights = weights_bytes_total(model, wish.quantization)
    if isinstance(weights, Missing):
        return {"cold_start_seconds": None, "cold_start_options": []}
    replica = Replica(
        engine=wish.engine,
        weights_bytes=weights,
        layers=len(model.layers),
        gpus=plan.gpus,
        nodes=nodes,
        pcie_gigabytes_per_second=gpu.pcie_gb_per_second,
    )
    asked = speed.cold_start or ColdStartWish(weights=weight_source(DEFAULT_SOURCE).sized(*DEFAULT_LUSTRE))
    found = cold_start_of(replica, asked)
    phases = {phase.value: interval_document(seconds) for phase, seconds in found.phases.items()}
    shown = {
        **phases,
        "total": interval_document(found.total),
        "weights_from": asked.weights.name,
        "weights_gigabytes_per_second": asked.weights.gigabytes_per_second_of_node(asked.replicas_together * nodes),
    }
    options = [_start_option(option) for option in start_options(replica, asked)]
    return {"cold_start_seconds": shown, "cold_start_options": options}


def _start_option(option: StartOption) -> dict[str, Any]:
    verdict = option.start.verdict(TARGET_SECONDS)
    return {
        "name": option.name,
        "what": option.what,
        "total": interval_document(option.start.total),
        "target_seconds": verdict.target_seconds,
        "reaches_target": "likely" if verdict.is_likely else "at best" if verdict.is_reachable else "no",
        "breaking_phase": None if verdict.breaking_phase is None else verdict.breaking_phase.value,
        "weights_gigabytes_per_second_needed": verdict.weights_gigabytes_per_second,
    }


def plan_cost(
    plan: ParallelPlan, gpu: GpuModel, wish: PlanWish, speed: SpeedWish, rate: Interval | None, *, replicas: int = 1
) -> Cost | None:
    """What replicas of a plan cost that together make tokens at some rate; ``None`` where no instance has the GPU."""
    instance = instance_for(plan, gpu, wish)
    if instance is None:
        return None
    return cost_of(
        instance,
        replicas * plan.gpus,
        table=speed.prices or bundled_prices(),
        purchase=speed.purchase,
        output_tokens_per_second=rate,
        slices_per_gpu=slices_per_gpu(gpu, wish),
    )


def cost_document(found: Cost | None) -> dict[str, Any] | None:
    """The keys of ``cost``."""
    if found is None:
        return None
    shown = {name: getattr(found, name) for name in COST_KEYS}
    return shown | {"usd_per_million_output_tokens": interval_document(found.usd_per_million_output_tokens)}


def interval_document(interval: Interval | None) -> dict[str, float] | None:
    """Low, mid, high."""
    return None if interval is None else {"low": interval.low, "mid": interval.mid, "high": interval.high}
