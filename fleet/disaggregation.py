"""Prefill and decode in separate pools: when that is proposed, in which ratio, and else why not."""

import math
from dataclasses import dataclass

from packaging.version import Version

from fleet.codepath import DISAGGREGATION
from fleet.kv_transfer import Uplink
from fleet.model import Missing
from fleet.plan_wish import PlanWish
from fleet.separate_pools import Replicas, SeparatePools, Side, separate_pools
from fleet.serving import Serving
from fleet.versions import parse_public

LONG_PROMPT_TOKENS = 4096
FIRST_VERSIONS = {"vllm": "0.18.0", "sglang": "0.4.10.post2"}
"""The first known version with disaggregation: --kv-transfer-config, --disaggregation-mode."""
MAX_POOL = 8
_POOLS = tuple((one, other) for one in range(1, MAX_POOL + 1) for other in range(1, MAX_POOL + 1))


@dataclass(frozen=True, slots=True)
class Disaggregation:
    """Whether separate pools are proposed."""

    reason: str
    pools: SeparatePools | None = None
    """``None`` = they are not proposed."""
    replicas: Replicas | None = None
    """Of both sides, in the ratio of their work."""


def disaggregation(serving: Serving, wish: PlanWish, uplink: Uplink | Missing) -> Disaggregation:
    """Pools for prefill and decode, both of the same plan, with their ratio; or why not."""
    refusal = _refusal(wish)
    if refusal is not None:
        return Disaggregation(refusal)
    side = Side(serving, uplink)
    pools = separate_pools(side, side)
    if isinstance(pools, Missing):
        return Disaggregation(f"{pools.message}: no ratio can be given")
    seconds = 1 / pools.prompts_per_second, 1 / pools.answers_per_second
    prefill, decode = pool_ratio(*seconds)
    reason = (
        f"at saturation a prompt of {serving.input_tokens} tokens takes {seconds[0]:.2f} s of a replica, "
        f"{serving.output_tokens} tokens of decode take {seconds[1]:.2f} s: {prefill} prefill to {decode} decode "
        f"replicas of {serving.plan}"
    )
    return Disaggregation(reason, pools, Replicas(prefill, decode))


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
