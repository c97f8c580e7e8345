"""Latency of a plan as intervals: time per output token and time to first token.

A roofline with few fitted coefficients (`fleet.latency_fit`). The intervals come from models that were left out of the
fit; where the GPU, the engine or the kind of plan was not measured, the answer says ``extrapolated`` and is wider by
what leaving out whole GPUs and engines showed. Without the bandwidth or the peak of a GPU there is no figure.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
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
from fleet.model import Missing
from fleet.serving import Serving

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
    """How fast something is served, with any number of requests in flight: what does not depend on it, worked out."""

    fit: LatencyFit
    serving: Serving
    work: PlanWork
    unmeasured: tuple[str, ...]
    """What of it lies outside the measured rows, whatever the load."""
    _known: dict[int, Latency] = field(default_factory=dict, repr=False, compare=False)

    def latency(self, concurrency: int) -> Latency:
        """With some requests in flight over the whole plan, remembered: whoever looks for a load asks again."""
        found = self._known.get(concurrency)
        if found is None:
            found = self._known[concurrency] = self._latency(concurrency)
        return found

    def reasons(self, concurrency: int) -> tuple[str, ...]:
        """What lies outside the measured rows with some requests in flight."""
        return (*self.unmeasured, *_unmeasured_load(self.fit, self.work, concurrency))

    def _latency(self, concurrency: int) -> Latency:
        fit, gpu, engine = self.fit, self.serving.gpu, self.serving.engine
        step = self.work.at(concurrency)
        tpot = tpot_seconds(step, fit.step, fit.step_engine(engine))
        ttft = ttft_seconds(step, tpot, fit.first_token, fit.first_token_engine(engine))
        reasons = self.reasons(concurrency)
        is_generative = self.serving.model.is_generative
        return Latency(
            tpot=around(tpot, _spread(fit.tpot, fit, gpu, engine, reasons)) if is_generative else None,
            ttft=around(ttft, _spread(fit.ttft, fit, gpu, engine, reasons)),
            basis="extrapolated" if reasons else "fitted",
            reasons=reasons,
        )


def latency_of(serving: Serving, concurrency: int = 1) -> Latency:
    """The latency with some requests in flight over the whole plan."""
    speed = speed_of(serving)
    return no_latency(speed) if isinstance(speed, Missing) else speed.latency(concurrency)


def speed_of(serving: Serving) -> Speed | Missing:
    """What does not depend on the load, worked out once; or which figure is missing."""
    model = serving.model
    missing = model.lacks("weights") or model.lacks("kv")
    if missing:
        return missing
    fit = bundled_fit()
    work = work_of(model, serving.quantization, serving.kv_dtype)
    on_plan = plan_work(work, serving.plan, serving.gpu, Load(1, serving.input_tokens, serving.output_tokens))
    if isinstance(on_plan, Missing):
        return on_plan
    return Speed(fit, serving, on_plan, tuple(_unmeasured_plan(fit, work, serving)))


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


def _unmeasured_plan(fit: LatencyFit, work: ModelWork, serving: Serving) -> Iterator[str]:
    """The same whatever the load; the sentences are made only where they apply, a search asks thousands of times."""
    plan, gpu, engine = serving.plan, serving.gpu, serving.engine
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
