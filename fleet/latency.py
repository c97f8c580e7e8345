"""Latency of a plan as intervals: time per output token and time to first token.

A roofline with few fitted coefficients (`fleet.latency_fit`). The intervals come from models that were left out of the
fit; where the GPU, the engine or the kind of plan was not measured, the answer says ``extrapolated`` and is wider by
what leaving out whole GPUs and engines showed. Without the bandwidth or the peak of a GPU there is no figure.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from fleet.hardware import GpuModel
from fleet.latency_fit import (
    Figure,
    LatencyFit,
    Spread,
    around,
    bundled_fit,
    tpot_seconds,
    ttft_seconds,
)
from fleet.latency_interval import Interval
from fleet.latency_model import ModelWork, work_of
from fleet.latency_work import Load, PlanWork, plan_work
from fleet.model import Missing, Model
from fleet.parallel_plan import ParallelPlan

Basis = Literal["fitted", "extrapolated", "none"]
GPUS_OF_A_NODE = 8


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds, each as low, most likely, high; ``None`` = no basis, see ``reasons``."""

    tpot: Interval | None
    ttft: Interval | None
    basis: Basis
    reasons: tuple[str, ...] = ()
    """What was not measured, or which figure is missing."""


@dataclass(frozen=True, slots=True)
class Speed:
    """A model on a plan by an engine, under requests of some lengths: its latency at any number of them in flight."""

    fit: LatencyFit
    engine: str
    gpu: GpuModel
    work: PlanWork
    unmeasured: tuple[str, ...]
    """What of it lies outside the measured rows, whatever the load."""

    def latency(self, concurrency: int) -> Latency:
        """With some requests in flight over the whole plan."""
        fit, gpu, engine = self.fit, self.gpu, self.engine
        step = self.work.at(concurrency)
        tpot = tpot_seconds(step, fit.step, fit.step_engine(engine))
        ttft = ttft_seconds(step, tpot, fit.first_token, fit.first_token_engine(engine))
        reasons = (*self.unmeasured, *_unmeasured_load(fit, self.work, concurrency))
        is_generative = self.work.work.model.is_generative
        return Latency(
            tpot=around(tpot, _spread(fit.tpot, fit, gpu, engine, reasons)) if is_generative else None,
            ttft=around(ttft, _spread(fit.ttft, fit, gpu, engine, reasons)),
            basis="extrapolated" if reasons else "fitted",
            reasons=reasons,
        )


def speed_of(
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
) -> Speed | Missing:
    """What does not depend on the load, worked out once; or which figure is missing."""
    missing = model.lacks("weights") or model.lacks("kv")
    if missing:
        return missing
    fit = fit or bundled_fit()
    work = work_of(model, quantization, kv_dtype)
    on_plan = plan_work(work, plan, gpu, Load(1, input_tokens, output_tokens))
    if isinstance(on_plan, Missing):
        return on_plan
    return Speed(fit, engine, gpu, on_plan, tuple(_unmeasured_plan(fit, work, plan, gpu, engine)))


def latency_of(
    model: Model,
    plan: ParallelPlan,
    gpu: GpuModel,
    *,
    engine: str,
    quantization: str | None = None,
    kv_dtype: str = "auto",
    concurrency: int = 1,
    input_tokens: int = 1024,
    output_tokens: int = 1024,
    fit: LatencyFit | None = None,
) -> Latency:
    """The latency with some requests in flight over the whole plan, each with these lengths."""
    speed = speed_of(
        model,
        plan,
        gpu,
        engine=engine,
        quantization=quantization,
        kv_dtype=kv_dtype,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        fit=fit,
    )
    return no_latency(speed) if isinstance(speed, Missing) else speed.latency(concurrency)


def no_latency(missing: Missing) -> Latency:
    """Without the figures that it takes there is none."""
    return Latency(None, None, "none", (missing.message,))


def _unmeasured_load(fit: LatencyFit, found: PlanWork, concurrency: int) -> Iterator[str]:
    """What of the load, or of the model under any load, lies outside the measured rows."""
    requests, model = concurrency / found.plan.data, found.work.model
    if requests > fit.largest_batch:
        yield f"measured up to {fit.largest_batch} requests a rank, asked for {requests:.0f}"
    if found.input_tokens > fit.longest_input_tokens:
        yield f"measured up to {fit.longest_input_tokens} input tokens, asked for {found.input_tokens}"
    if not (model.is_generative and "text" in model.modalities):
        yield "no measured point of a model that does not generate text from text"


def _unmeasured_plan(fit: LatencyFit, work: ModelWork, plan: ParallelPlan, gpu: GpuModel, engine: str) -> Iterator[str]:
    """The same whatever the load; the sentences are made only where they apply, a search asks thousands of times."""
    if gpu.name not in fit.gpus:
        yield f"no measured point on {gpu.name}"
    if engine not in fit.tpot.engines:
        yield f"no measured point of {engine}"
    if work.encoding.name not in fit.encodings:
        yield f"no measured point with {work.encoding.name} weights"
    if plan.pipeline > 1 or plan.context > 1:
        yield f"no measured point with pipeline or context parallelism ({plan})"
    if plan.gpus > GPUS_OF_A_NODE:
        yield f"no measured point over several nodes ({plan.gpus} GPUs)"


def _spread(figure: Figure, fit: LatencyFit, gpu: GpuModel, engine: str, reasons: tuple[str, ...]) -> Spread:
    """That of the measured points, or a wider one where the question lies outside of them."""
    return figure.beyond(is_known_gpu=gpu.name in fit.gpus, engine=engine) if reasons else figure.fitted
