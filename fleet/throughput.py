"""Throughput at saturation: how many output tokens a second a plan makes when there is always a next request.

The batch is what the KV cache holds (and no engine batches more than some), its step is that of `fleet.latency_fit`
with every prompt paid in full. Fitted on one engine; for the others the answer says ``extrapolated``.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from fleet.hardware import GpuModel
from fleet.latency import Basis
from fleet.latency_fit import (
    EngineCoefficients,
    LatencyFit,
    SaturationCoefficients,
    Spread,
    StepCoefficients,
    bundled_fit,
    prompt_seconds,
    tpot_seconds,
)
from fleet.latency_interval import Interval
from fleet.latency_model import ModelWork, work_of
from fleet.latency_work import Load, StepWork, plan_work
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan

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


def throughput_of(
    model: Model,
    plan: ParallelPlan,
    gpu: GpuModel,
    *,
    engine: str,
    quantization: str | None = None,
    kv_dtype: str = "auto",
    input_tokens: int = 1024,
    output_tokens: int = 1024,
    fit: LatencyFit | None = None,
) -> Throughput:
    """The throughput of a plan under requests of these lengths."""
    missing = model.lacks("weights") or model.lacks("kv")
    if missing or not model.is_generative:
        return Throughput(None, None, None, "none", (missing.message if missing else "the model generates no text",))
    fit = fit or bundled_fit()
    work = work_of(model, quantization, kv_dtype)
    limit = fit.saturation.coefficients["largest_batch"]
    step = saturated_work(work, plan, gpu, input_tokens, output_tokens, largest_batch=limit)
    if isinstance(step, Missing):
        return Throughput(None, None, None, "none", (step.message,))
    rate = saturated_tokens_per_second(
        step,
        plan,
        fit.step,
        fit.step_engine(engine),
        fit.saturated,
    )
    reasons = tuple(_unmeasured(fit, plan, gpu, engine))
    spread = _spread(fit, engine, reasons)
    total = Interval(rate * min(1.0, spread.low), rate, rate * max(1.0, spread.high))
    concurrency = round(step.batch * plan.data * plan.pipeline)
    return Throughput(total, total * (1 / plan.gpus), concurrency, "extrapolated" if reasons else "fitted", reasons)


def saturated_work(
    work: ModelWork,
    plan: ParallelPlan,
    gpu: GpuModel,
    input_tokens: int,
    output_tokens: int,
    *,
    largest_batch: float,
) -> StepWork | Missing:
    """The work of a step with as many requests as the KV cache holds, or as the engine batches at most."""
    found = plan_work(work, plan, gpu, Load(UNBOUNDED, input_tokens, output_tokens))
    if isinstance(found, Missing):
        return found
    batch = min(found.at(UNBOUNDED).running, largest_batch)
    return found.at(batch * plan.data * plan.pipeline)


def saturated_tokens_per_second(
    step: StepWork,
    plan: ParallelPlan,
    fit: StepCoefficients,
    engine: EngineCoefficients,
    saturation: SaturationCoefficients,
) -> float:
    """Tokens of a step over its seconds; each token pays its part of a prompt."""
    decode = saturation.decode_factor * tpot_seconds(step, fit, _undisturbed(engine))
    prompt = prompt_seconds(step, _saturated(fit, saturation.prompt_efficiency))
    seconds = decode + step.batch * prompt / step.output_tokens
    return step.batch * plan.data * plan.pipeline / seconds


@lru_cache(maxsize=64)
def _undisturbed(engine: EngineCoefficients) -> EngineCoefficients:
    return replace(engine, interference=0.0)


@lru_cache(maxsize=64)
def _saturated(fit: StepCoefficients, prompt_efficiency: float) -> StepCoefficients:
    return replace(fit, prompt_efficiency=prompt_efficiency)


def _unmeasured(fit: LatencyFit, plan: ParallelPlan, gpu: GpuModel, engine: str) -> list[str]:
    found = []
    if engine != fit.saturation.engine:
        found.append(f"measured on {fit.saturation.engine} alone")
    if gpu.name not in fit.saturation.gpus:
        found.append(f"no measured point on {gpu.name}")
    if plan.pipeline > 1 or plan.context > 1:
        found.append(f"no measured point with pipeline or context parallelism ({plan})")
    return found


def _spread(fit: LatencyFit, engine: str, reasons: tuple[str, ...]) -> Spread:
    """The widest that applies; tokens a second are the inverse of seconds a token."""
    saturation = fit.saturation
    if not reasons:
        return saturation.fitted
    other = saturation.other_gpu
    if engine == saturation.engine:
        return other
    slower, faster = 1 / fit.tpot.other_engine.high, 1 / fit.tpot.other_engine.low
    return Spread(low=min(other.low, slower), high=max(other.high, faster), points=other.points)
