"""Prefill and decode in separate pools: when that is proposed, in which ratio, and else why not."""

import math
from dataclasses import dataclass

from packaging.version import Version

from fleet.codepath import DISAGGREGATION
from fleet.hardware import GpuModel
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import ModelFigures
from fleet.plan_wish import PlanWish
from fleet.versions import parse_public

LONG_PROMPT_TOKENS = 4096
PREFILL_SHARE_OF_PEAK = 0.45
DECODE_SHARE_OF_BANDWIDTH = 0.8
"""Both from the latency roofline of the facts."""
FIRST_VERSIONS = {"vllm": "0.18.0", "sglang": "0.4.10.post2"}
"""The first known version with disaggregation: --kv-transfer-config, --disaggregation-mode."""
MAX_POOL = 8
_POOLS = tuple((one, other) for one in range(1, MAX_POOL + 1) for other in range(1, MAX_POOL + 1))


@dataclass(frozen=True, slots=True)
class Disaggregation:
    """Whether separate pools are proposed."""

    proposed: bool
    reason: str
    prefill_replicas: int | None = None
    decode_replicas: int | None = None
    transfer_bytes_per_request: int | None = None
    """KV cache that a prompt's blocks take from one pool to the other."""
    exposes: tuple[str, ...] = ()


def disaggregation(
    figures: ModelFigures,
    plan: ParallelPlan,
    gpu: GpuModel,
    wish: PlanWish,
    *,
    parameters_active: int | None,
    kv_bytes_per_token: int | None,
) -> Disaggregation:
    """Pools for prefill and decode with their ratio, or why not."""
    refusal = _refusal(wish)
    if refusal is not None:
        return Disaggregation(proposed=False, reason=refusal)
    seconds = _seconds(figures, plan, gpu, wish, parameters_active)
    if seconds is None:
        return Disaggregation(
            False, "the rates of the GPU or the size of the model are not known: no ratio can be given"
        )
    prefill, decode = pool_ratio(*seconds)
    prompt = wish.input_tokens or 0
    return Disaggregation(
        proposed=True,
        reason=(
            f"prompts of {prompt} tokens take {seconds[0]:.2f} s, {wish.output_tokens or 0} tokens of decode "
            f"{seconds[1]:.2f} s of a shared step: {prefill} prefill to {decode} decode replicas of {plan}"
        ),
        prefill_replicas=prefill,
        decode_replicas=decode,
        transfer_bytes_per_request=None if kv_bytes_per_token is None else kv_bytes_per_token * prompt,
        exposes=(DISAGGREGATION,),
    )


def pool_ratio(prefill_seconds: float, decode_seconds: float) -> tuple[int, int]:
    """The pools of up to eight replicas whose ratio is nearest to that of the work of one request."""
    if prefill_seconds <= 0 or decode_seconds <= 0:
        return 1, 1
    wanted = math.log(prefill_seconds) - math.log(decode_seconds)
    return min(_POOLS, key=lambda pools: (abs(math.log(pools[0] / pools[1]) - wanted), sum(pools)))


def _refusal(wish: PlanWish) -> str | None:
    if not wish.disaggregation:
        return "not wished for"
    if (wish.input_tokens or 0) < LONG_PROMPT_TOKENS:
        asked = (
            "no length of prompts was given" if wish.input_tokens is None else f"prompts of {wish.input_tokens} tokens"
        )
        return f"{asked}: below {LONG_PROMPT_TOKENS} tokens chunked prefill costs less than moving the cache"
    if DISAGGREGATION in wish.closed_paths:
        return f"the code path '{DISAGGREGATION}' of {wish.engine} {wish.engine_version or ''} is closed by advisories"
    first = FIRST_VERSIONS.get(wish.engine)
    if first is None:
        return f"{wish.engine} needs its own orchestrator command for it, which is not started here"
    version = None if wish.engine_version is None else parse_public(wish.engine_version)
    if version is not None and version < Version(first):
        return f"{wish.engine} {wish.engine_version} is older than {first}, the first known version with it"
    return None


def _seconds(
    figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, wish: PlanWish, parameters_active: int | None
) -> tuple[float, float] | None:
    """Prefill and decode work of one request: compute-bound and bandwidth-bound, the step shared by the batch."""
    weights = figures.rank_weights(plan)
    context = wish.context_of(figures.model)
    cache = figures.sequence_bytes(plan, context)
    if parameters_active is None or isinstance(weights, Missing) or isinstance(cache, Missing):
        return None
    if not gpu.bf16_tflops or not gpu.memory_bandwidth_gb_per_second:
        return None
    peak = PREFILL_SHARE_OF_PEAK * gpu.bf16_tflops * 1e12 * plan.gpus
    prefill = 2.0 * parameters_active * (wish.input_tokens or 0) / peak
    bandwidth = DECODE_SHARE_OF_BANDWIDTH * gpu.memory_bandwidth_gb_per_second * 1e9
    batch = max(1, wish.concurrency)
    step = (weights / batch + cache) * plan.pipeline / bandwidth
    return prefill, step * (wish.output_tokens or 0)
