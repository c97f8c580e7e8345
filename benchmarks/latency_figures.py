"""What is fitted: the parameters of each figure, their priors, and their errors on measured points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log

from latency_rows import Row, SaturatedRow, model_of
from robust_fit import Prior

from fleet.hardware import gpu
from fleet.latency_fit import (
    EngineCoefficients,
    EngineFirstToken,
    FirstTokenCoefficients,
    SaturationCoefficients,
    StepCoefficients,
    tpot_seconds,
    ttft_seconds,
    usual,
)
from fleet.latency_model import work_of
from fleet.latency_work import Load, StepWork, plan_work
from fleet.model import Missing
from fleet.throughput import saturated_step, saturated_tokens_per_second

Parameters = Mapping[str, float]
Coefficients = Mapping[str, float]
OfEngines = Mapping[str, Coefficients]
STEP = {
    "dense_efficiency": Prior(0.85, 0.2),
    "expert_efficiency": Prior(0.7, 0.4),
    "kv_efficiency": Prior(0.7, 0.3),
    "decode_efficiency": Prior(0.5, 0.4),
    "prompt_efficiency": Prior(0.5, 0.3),
    "low_precision_gain": Prior(0.8, 0.2),
    "link_efficiency": Prior(0.6, 0.4),
    "hop_seconds": Prior(5e-6, 0.7),
    "step_seconds": Prior(1e-3, 0.7),
    "sequence_seconds": Prior(1e-5, 1.0),
    "prompt_kernel_seconds": Prior(5e-6, 0.7),
}
STEP_ENGINE = {"kernel_seconds": Prior(3e-6, 0.5), "interference": Prior(0.7, 0.4)}
FIRST = {
    "prompt_efficiency": Prior(0.5, 0.3),
    "low_precision_gain": Prior(0.8, 0.2),
    "prompt_memory_efficiency": Prior(0.6, 0.3),
    "expert_factor": Prior(1.3, 0.4),
    "link_efficiency": Prior(0.6, 0.4),
    "prompt_kernel_seconds": Prior(6e-6, 0.7),
    "queue_power": Prior(0.8, 0.3),
    "full_cache_wait": Prior(0.5, 1.0),
}
FIRST_ENGINE = {"fixed_seconds": Prior(0.05, 0.7), "queue": Prior(0.15, 1.0)}
SATURATION = {"decode_factor": Prior(1.0, 0.4), "prompt_efficiency": Prior(0.5, 0.3), "largest_batch": Prior(1024, 0.7)}
"""Physical guesses from which the data may move a figure: a part of a peak, microseconds of a launch."""


@dataclass(frozen=True)
class Point:
    """One measured value with its work."""

    row: Row | SaturatedRow
    measured: float
    engine: str
    work: StepWork | None = None
    tpot: float = inf
    """The predicted time per output token, for the wait of a first token."""

    @property
    def latency_row(self) -> Row:
        """Its row, where it is one of latency."""
        if isinstance(self.row, Row):
            return self.row
        raise TypeError(f"a point of throughput: {self.row}")

    @property
    def step(self) -> StepWork:
        """Its work, which points of latency have."""
        if self.work is None:
            raise ValueError(f"no work was computed for {self.row}")
        return self.work


Predict = Callable[[Point], float]


@dataclass(frozen=True)
class Figure:
    """A fitted figure: its parameters, and how they become a prediction."""

    name: str
    priors: Mapping[str, Prior]
    bind: Callable[[Coefficients, OfEngines], Predict]
    engine_priors: Mapping[str, Prior] = field(default_factory=dict)

    def priors_of(self, engines: Sequence[str]) -> dict[str, Prior]:
        """All parameters, those of engines as ``engine/name``."""
        own = {f"{engine}/{name}": prior for engine in engines for name, prior in self.engine_priors.items()}
        return {**self.priors, **own}

    def errors(self, points: Sequence[Point], parameters: Parameters) -> list[float]:
        """Log of predicted over measured."""
        predict = self.bind(*split(parameters))
        return [log(predict(point) / point.measured) for point in points]


def split(parameters: Parameters) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """General parameters, and those of each engine."""
    general = {name: value for name, value in parameters.items() if "/" not in name}
    engines: dict[str, dict[str, float]] = {}
    for name, value in parameters.items():
        engine, _, rest = name.partition("/")
        if rest:
            engines.setdefault(engine, {})[rest] = value
    return general, engines


def _bind_tpot(general: Coefficients, engines: OfEngines) -> Predict:
    step = StepCoefficients(**general)
    known = {name: EngineCoefficients(**values) for name, values in engines.items()}
    other = EngineCoefficients(**usual(engines.values()))
    return lambda point: tpot_seconds(point.step, step, known.get(point.engine, other))


def _bind_ttft(general: Coefficients, engines: OfEngines) -> Predict:
    first = FirstTokenCoefficients(**general)
    known = {name: EngineFirstToken(**values) for name, values in engines.items()}
    other = EngineFirstToken(**usual(engines.values()))
    return lambda point: ttft_seconds(point.step, point.tpot, first, known.get(point.engine, other))


TPOT = Figure("tpot", STEP, _bind_tpot, STEP_ENGINE)
TTFT = Figure("ttft", FIRST, _bind_ttft, FIRST_ENGINE)


def saturation(step_general: Coefficients, step_engines: OfEngines) -> Figure:
    """Throughput, standing on the fitted time per output token."""
    step = StepCoefficients(**step_general)

    def bind(general: Coefficients, _: OfEngines) -> Predict:
        coefficients = SaturationCoefficients(**general)

        def predict(point: Point) -> float:
            row = point.row
            if not isinstance(row, SaturatedRow):
                raise TypeError(f"a point of latency: {row}")
            load = Load(1, row.input_tokens, row.output_tokens)
            work = plan_work(work_of(model_of(row.shape), row.quantization, row.kv_dtype), row.plan, gpu(row.gpu), load)
            if isinstance(work, Missing):
                raise TypeError(work.message)
            saturated = saturated_step(work, coefficients.largest_batch)
            engine = EngineCoefficients(**step_engines[point.engine])
            return saturated_tokens_per_second(saturated, row.plan, step, engine, coefficients) / row.plan.gpus

        return predict

    return Figure("saturation", SATURATION, bind)
