"""Separate pools in the answer of a plan: their latency, throughput and cost beside the same GPUs colocated.

Both sides of the comparison have as many requests in flight: those of ``--concurrency`` on each replica.
"""

from dataclasses import dataclass, replace
from typing import Any

from fleet.codepath import DISAGGREGATION
from fleet.cost import Cost, usd_per_million
from fleet.disaggregation import disaggregation
from fleet.hardware import GpuModel
from fleet.kv_transfer import Uplink, prompt_cache_bytes
from fleet.latency import latency_of
from fleet.latency_interval import Interval
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_speed import (
    COST_KEYS,
    SpeedWish,
    cost_document,
    instance_for,
    interval_document,
    latency_document,
    plan_cost,
    serving_of,
    slices_per_gpu,
    throughput_document,
)
from fleet.plan_wish import PlanWish
from fleet.separate_pools import PairThroughput, Replicas, SeparatePools
from fleet.serving import Serving
from fleet.throughput import Throughput, throughput_of

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is compared."""

    serving: Serving
    gpu: GpuModel
    wish: PlanWish
    speed: SpeedWish

    @property
    def plan(self) -> ParallelPlan:
        return self.serving.plan

    def cost(self, replicas: int, rate: Interval | None) -> Cost | None:
        return plan_cost(self.plan, self.gpu, self.wish, self.speed, rate, replicas=replicas)


def disaggregation_document(
    model: Model, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish, speed: SpeedWish
) -> Document:
    """The key ``disaggregation``: whether pools are proposed, what they would do, and the same GPUs colocated."""
    asked = _Asked(serving_of(model, plan, gpu, wish), gpu, wish, speed)
    found = disaggregation(asked.serving, wish, _uplink(asked))
    pools, replicas = found.pools, found.replicas
    is_proposed = pools is not None and replicas is not None
    return {
        "proposed": is_proposed,
        "reason": found.reason,
        "prefill_replicas": None if replicas is None else replicas.prefill,
        "decode_replicas": None if replicas is None else replicas.decode,
        "transfer_bytes_per_request": _transfer_bytes(asked.serving) if is_proposed else None,
        "exposes": (DISAGGREGATION,) if is_proposed else (),
        "pools": None if pools is None or replicas is None else _pools(asked, pools, replicas),
        "colocated": None if replicas is None else _colocated(asked, replicas.prefill + replicas.decode),
    }


def _uplink(asked: _Asked) -> Uplink | Missing:
    shape, gpu = instance_for(asked.plan, asked.gpu, asked.wish), asked.gpu
    if shape is not None:
        return Uplink.of(shape, slices_per_gpu(gpu, asked.wish))
    message = f"how long the cache takes from pool to pool is not known: no instance type with {gpu.name} is known"
    return Missing("latency", "network_gigabits_per_second", message)


def _transfer_bytes(serving: Serving) -> int | None:
    found = prompt_cache_bytes(serving.model, serving.kv_dtype, serving.input_tokens)
    return None if isinstance(found, Missing) else found


def _pools(asked: _Asked, pools: SeparatePools, replicas: Replicas) -> Document:
    count = replicas.prefill + replicas.decode
    in_flight = count * asked.wish.concurrency
    found, throughput = pools.in_flight(in_flight, replicas), pools.throughput(replicas)
    return {
        "gpus": count * asked.plan.gpus,
        "requests_in_flight": in_flight,
        "requests_per_second": found.requests_per_second,
        "prefill_utilisation": found.prefill_utilisation,
        "requests_in_flight_of_decode_replica": found.concurrency,
        "latency": latency_document(found.latency),
        "first_token_seconds": found.first_token,
        "throughput_tokens_per_second": _throughput(throughput, count * asked.plan.gpus),
        "cost": _cost(asked, replicas, throughput.total),
    }


def _throughput(found: PairThroughput, gpus: int) -> Document:
    return {
        "total": interval_document(found.total),
        "per_gpu": interval_document(found.total * (1 / gpus)),
        "prefill": interval_document(found.prefill),
        "decode": interval_document(found.decode),
        "limited_by": found.limited_by.value,
        "basis": found.basis,
        "reasons": found.reasons,
    }


def _cost(asked: _Asked, replicas: Replicas, rate: Interval) -> Document:
    """The keys of ``cost``, of both pools together, each on nodes of its own; and what each pool costs."""
    prefill, decode = asked.cost(replicas.prefill, None), asked.cost(replicas.decode, None)
    if prefill is None or decode is None:
        return _unpriced(asked) | {"prefill_usd_per_hour": None, "decode_usd_per_hour": None}
    sides = {"prefill_usd_per_hour": prefill.usd_per_hour, "decode_usd_per_hour": decode.usd_per_hour}
    return (cost_document(_together(prefill, decode, rate)) or {}) | sides


def _together(prefill: Cost, decode: Cost, rate: Interval) -> Cost:
    nodes = prefill.nodes + decode.nodes
    whole = _sum(prefill.usd_per_hour, decode.usd_per_hour)
    share = _sum(prefill.usd_per_hour_of_share, decode.usd_per_hour_of_share)
    return replace(
        prefill,
        nodes=nodes,
        gpu_share=(prefill.nodes * prefill.gpu_share + decode.nodes * decode.gpu_share) / nodes,
        usd_per_hour=whole,
        usd_per_hour_of_share=share,
        usd_per_million_output_tokens=None if share is None else usd_per_million(share, rate),
        reason=prefill.reason if whole is None else None,
    )


def _unpriced(asked: _Asked) -> Document:
    return dict.fromkeys(COST_KEYS) | {"reason": f"no instance type with {asked.gpu.name} is known"}


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _colocated(asked: _Asked, replicas: int) -> Document:
    """As many replicas of the same plan, each with prompts and answers."""
    found = throughput_of(asked.serving)
    total = None if found.total is None else found.total * replicas
    concurrency = None if found.concurrency is None else found.concurrency * replicas
    throughput = Throughput(total, found.per_gpu, concurrency, found.basis, found.reasons)
    return {
        "gpus": replicas * asked.plan.gpus,
        "replicas": replicas,
        "requests_in_flight": replicas * asked.wish.concurrency,
        "latency": latency_document(latency_of(asked.serving, asked.wish.concurrency)),
        "throughput_tokens_per_second": throughput_document(throughput),
        "cost": cost_document(asked.cost(replicas, total)) or _unpriced(asked),
    }
