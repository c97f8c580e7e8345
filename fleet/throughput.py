"""Throughput at saturation: how many output tokens a second a plan makes when there is always a next request.

The batch is what the KV cache holds (and no engine batches more than some), its step is that of `fleet.latency_fit`
with every prompt paid in full. Fitted on one engine; for the others the answer says ``extrapolated``.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from fleet.latency import Basis, Speed, speed_of
from fleet.latency_fit import (
    EngineCoefficients,
    LatencyFit,
    SaturationCoefficients,
    Spread,
    StepCoefficients,
    around,
    prompt_seconds,
    tpot_seconds,
)
from fleet.latency_interval import Interval
from fleet.latency_work import PlanWork, StepWork
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.serving import Serving

UNBOUNDED = 1e9
"""Requests in flight that no cache holds."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """Output tokens a second; ``None`` = no basis, see ``reasons``."""

    total: Interval | None
    """Of the whole plan."""
    per_gpu: Interval | None
    concurrency: int | None
    """Requests in flight at saturation, over the whole plan."""
    basis: Basis
    reasons: tuple[str, ...] = ()


def throughput_of(serving: Serving) -> Throughput:
    """The throughput of a plan under requests of these lengths."""
    speed = speed_of(serving)
    return _none(speed.message) if isinstance(speed, Missing) else saturation_of(speed)


def saturation_of(speed: Speed) -> Throughput:
    """The same of what is worked out already."""
    fit, plan, engine = speed.fit, speed.serving.plan, speed.serving.engine
    if not speed.serving.model.is_generative:
        return _none("the model generates no text")
    step = saturated_step(speed.work, fit.saturated.largest_batch)
    rate = saturated_tokens_per_second(step, plan, fit.step, fit.step_engine(engine), fit.saturated)
    reasons = unmeasured_saturation(speed)
    total = around(rate, beyond(fit, engine) if reasons else fit.saturation.fitted)
    concurrency = round(step.batch * plan.data * plan.pipeline)
    return Throughput(total, total * (1 / plan.gpus), concurrency, "extrapolated" if reasons else "fitted", reasons)


def _none(reason: str) -> Throughput:
    return Throughput(None, None, None, "none", (reason,))


def saturated_step(work: PlanWork, largest_batch: float) -> StepWork:
    """A step with as many requests as the KV cache holds, or as the engine batches at most."""
    batch = min(work.at(UNBOUNDED).running, largest_batch)
    return work.at(batch * work.plan.data * work.plan.pipeline)


def saturated_tokens_per_second(
    step: StepWork,
    plan: ParallelPlan,
    fit: StepCoefficients,
    engine: EngineCoefficients,
    saturation: SaturationCoefficients,
) -> float:
    """Tokens of a step over its seconds; each token pays its part of a prompt."""
    decode = saturation.decode_factor * tpot_seconds(step, fit, undisturbed(engine))
    prompt = prompt_seconds(step, _saturated(fit, saturation.prompt_efficiency))
    seconds = decode + step.batch * prompt / step.output_tokens
    return step.batch * plan.data * plan.pipeline / seconds


def prompt_at_saturation(speed: Speed) -> float:
    """Seconds that one prompt takes of its ranks."""
    return prompt_seconds(speed.work.at(1), _saturated(speed.fit.step, speed.fit.saturated.prompt_efficiency))


@lru_cache(maxsize=64)
def undisturbed(engine: EngineCoefficients) -> EngineCoefficients:
    """The engine without the prompts that hold up its steps."""
    return replace(engine, interference=0.0)


@lru_cache(maxsize=64)
def _saturated(fit: StepCoefficients, prompt_efficiency: float) -> StepCoefficients:
    return replace(fit, prompt_efficiency=prompt_efficiency)


def unmeasured_saturation(speed: Speed) -> tuple[str, ...]:
    """What of it lies outside the measured points of throughput."""
    return tuple(_unmeasured(speed.fit, speed.serving))


def _unmeasured(fit: LatencyFit, serving: Serving) -> Iterator[str]:
    plan, gpu = serving.plan, serving.gpu
    if serving.engine != fit.saturation.engine:
        yield f"measured on {fit.saturation.engine} alone"
    if gpu.name not in fit.saturation.gpus:
        yield f"no measured point on {gpu.name}"
    if plan.pipeline > 1 or plan.context > 1:
        yield f"no measured point with pipeline or context parallelism ({plan})"


def beyond(fit: LatencyFit, engine: str) -> Spread:
    """Outside the measured points: the widest that applies; tokens a second are the inverse of seconds a token."""
    saturation = fit.saturation
    other = saturation.other_gpu
    if engine == saturation.engine:
        return other
    slower, faster = 1 / fit.tpot.other_engine.high, 1 / fit.tpot.other_engine.low
    return Spread(low=min(other.low, slower), high=max(other.high, faster), points=other.points)
