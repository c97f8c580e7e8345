"""The fitted coefficients of latency and throughput (``fleet/data/latency_fit.json``) and the formulas they stand in.

The coefficients are few and physical: how much of a peak is reached, how long a kernel, a wait or a step takes. Those
of an engine say how fast it launches kernels and how much the prompts of new requests hold up running ones. None
belongs to a model. ``benchmarks/fit_latency.py --write`` fits them; nothing here is written by hand.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from statistics import fmean

from fleet.latency_interval import Interval
from fleet.latency_work import StepWork
from fleet.value import Value

OVERLAP_POWER = 3
"""Reading and multiplying overlap."""
USUAL = ""
"""The name under which an engine that nobody measured stands."""
PROMPT_BATCH_TOKENS = 2048
"""Shorter prompts share the launches of a prefill step."""


@dataclass(frozen=True, slots=True)
class StepCoefficients:
    """Of the time per output token."""

    dense_efficiency: float
    expert_efficiency: float
    kv_efficiency: float
    decode_efficiency: float
    prompt_efficiency: float
    low_precision_gain: float
    """Part of the higher peak of fp8 and fp4 that is left, compared with bf16."""
    link_efficiency: float
    hop_seconds: float
    step_seconds: float
    sequence_seconds: float
    """Per request of the batch: sampling, detokenising."""
    prompt_kernel_seconds: float
    """Launching one kernel of a prefill step, which has no graph."""

    @property
    def prompt_memory_efficiency(self) -> float:
        """A prompt reads mostly experts, where there are any."""
        return self.expert_efficiency


@dataclass(frozen=True, slots=True)
class EngineCoefficients:
    """Of one engine."""

    kernel_seconds: float
    """One kernel of a decode step."""
    interference: float
    """How much of the prefill of other requests a running one waits for."""


@dataclass(frozen=True, slots=True)
class FirstTokenCoefficients:
    """Of the time to the first token."""

    prompt_efficiency: float
    low_precision_gain: float
    prompt_memory_efficiency: float
    expert_factor: float
    """How much longer prompts of a mixture of experts take."""
    link_efficiency: float
    prompt_kernel_seconds: float
    queue_power: float
    """How the wait grows with the batch."""
    full_cache_wait: float
    """Part of a running answer that a request waits for where the KV cache is full."""


@dataclass(frozen=True, slots=True)
class EngineFirstToken:
    """Of one engine."""

    fixed_seconds: float
    queue: float
    """Prompts of others that come before one's own, per request of the batch."""


@dataclass(frozen=True, slots=True)
class SaturationCoefficients:
    """Of throughput with more requests than fit, of the measured engine."""

    decode_factor: float
    """A step over what the latency of interactive loads says."""
    prompt_efficiency: float
    largest_batch: float
    """Requests of one rank beyond which no more are batched."""


class Spread(Value):
    """Where measured over predicted lies for four points of five, from models that were not fitted."""

    low: float
    high: float
    points: int


class Figure(Value):
    """One fitted figure."""

    coefficients: Mapping[str, float]
    engines: Mapping[str, Mapping[str, float]]
    fitted: Spread
    other_gpu: Spread
    """From GPUs that were not fitted."""
    other_engine: Spread
    """From engines that were not fitted."""

    def beyond(self, *, is_known_gpu: bool, engine: str) -> Spread:
        """Outside the measured points: the widest that applies; nobody has measured how far off two unknowns are."""
        return self._beyond[is_known_gpu, engine in self.engines]

    @cached_property
    def _beyond(self) -> dict[tuple[bool, bool], Spread]:
        """By whether the GPU and the engine were measured."""
        both = self._widest(self.other_gpu, self.other_engine)
        one = {(False, True): self._widest(self.other_gpu), (True, False): self._widest(self.other_engine)}
        return {(True, True): both, (False, False): both, **one}

    def _widest(self, *others: Spread) -> Spread:
        spreads = (self.fitted, *others)
        low, high = min(spread.low for spread in spreads), max(spread.high for spread in spreads)
        return Spread(low=low, high=high, points=min(spread.points for spread in spreads))


class SaturationFit(Value):
    """Throughput at saturation, of one engine."""

    engine: str
    coefficients: Mapping[str, float]
    gpus: tuple[str, ...]
    fitted: Spread
    other_gpu: Spread


class LatencyFit(Value):
    """``latency_fit.json``."""

    source: str
    retrieved: str
    made_by: str
    rows: int
    shapes: int
    """Different models in the rows."""
    gpus: tuple[str, ...]
    encodings: tuple[str, ...]
    engine_versions: Mapping[str, tuple[str, str]]
    """Oldest and newest version among the points of each engine; newer ones may be faster."""
    largest_batch: int
    longest_input_tokens: int
    tpot: Figure
    ttft: Figure
    saturation: SaturationFit

    @cached_property
    def step(self) -> StepCoefficients:
        """Of the time per output token."""
        return StepCoefficients(**self.tpot.coefficients)

    @cached_property
    def first_token(self) -> FirstTokenCoefficients:
        """Of the time to the first token."""
        return FirstTokenCoefficients(**self.ttft.coefficients)

    @cached_property
    def saturated(self) -> SaturationCoefficients:
        """Of throughput."""
        return SaturationCoefficients(**self.saturation.coefficients)

    def step_engine(self, name: str) -> EngineCoefficients:
        """Of an engine, or of a usual one where it was not measured."""
        return self._step_engines.get(name) or self._step_engines[USUAL]

    def first_token_engine(self, name: str) -> EngineFirstToken:
        """Of an engine, or of a usual one where it was not measured."""
        return self._first_token_engines.get(name) or self._first_token_engines[USUAL]

    @cached_property
    def _step_engines(self) -> dict[str, EngineCoefficients]:
        engines = {**self.tpot.engines, USUAL: usual(self.tpot.engines.values())}
        return {name: EngineCoefficients(**values) for name, values in engines.items()}

    @cached_property
    def _first_token_engines(self) -> dict[str, EngineFirstToken]:
        engines = {**self.ttft.engines, USUAL: usual(self.ttft.engines.values())}
        return {name: EngineFirstToken(**values) for name, values in engines.items()}


@cache
def bundled_fit() -> LatencyFit:
    """The coefficients that came with the program."""
    text = files("fleet").joinpath("data", "latency_fit.json").read_text(encoding="utf-8")
    return LatencyFit.model_validate_json(text)


def prompt_seconds(work: StepWork, fit: StepCoefficients | FirstTokenCoefficients) -> float:
    """Prefill of one prompt: operations or reading the weights, traffic between the ranks, launches.

    Short prompts share a prefill step, and so its launches and its reading of the weights.
    """
    share = min(1.0, work.input_tokens / PROMPT_BATCH_TOKENS)
    gain = fit.low_precision_gain if work.is_low_precision else 1.0
    compute = (work.prompt_operations / gain + work.prompt_attention) / fit.prompt_efficiency
    memory = share * work.prompt_memory / fit.prompt_memory_efficiency
    launches = share * work.kernels * fit.prompt_kernel_seconds
    return longer(compute, memory) + work.prompt_link / fit.link_efficiency + launches


def longer(one: float, other: float) -> float:
    """The longer of two things that overlap, softened where both take the same time."""
    return math.pow(math.pow(one, OVERLAP_POWER) + math.pow(other, OVERLAP_POWER), 1 / OVERLAP_POWER)


def tpot_seconds(work: StepWork, fit: StepCoefficients, engine: EngineCoefficients) -> float:
    """One step: memory or compute, KV cache, launches, waits between ranks, and the prompts of new requests.

    Each answer of n tokens makes room for one new prompt, so every step carries batch / n prefills.
    """
    gain = fit.low_precision_gain if work.is_low_precision else 1.0
    memory = work.dense / fit.dense_efficiency + work.experts / fit.expert_efficiency
    weights = longer(memory, work.decode_operations / gain / fit.decode_efficiency)
    attended = longer(work.kv / fit.kv_efficiency, work.attention_operations / fit.decode_efficiency)
    launches = work.kernels * engine.kernel_seconds
    waits = work.hops * fit.hop_seconds + work.link / fit.link_efficiency
    fixed = fit.step_seconds + work.batch * fit.sequence_seconds
    interference = engine.interference * work.batch * prompt_seconds(work, fit) / work.output_tokens
    return weights + attended + launches + waits + fixed + interference


def ttft_seconds(work: StepWork, tpot: float, fit: FirstTokenCoefficients, engine: EngineFirstToken) -> float:
    """The own prompt, those of others before it, and the wait for room where the KV cache is full."""
    prompt = prompt_seconds(work, fit) * (fit.expert_factor if work.has_experts else 1.0)
    queue = 1.0 + engine.queue * math.pow(work.batch - 1.0, fit.queue_power)
    waiting = max(0.0, work.batch - work.running) / work.running
    return engine.fixed_seconds + prompt * queue + fit.full_cache_wait * waiting * work.output_tokens * tpot


def around(seconds: float, spread: Spread) -> Interval:
    """An interval around a prediction; the prediction itself stays in the middle."""
    return Interval(seconds * min(1.0, spread.low), seconds, seconds * max(1.0, spread.high))


def usual(engines: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The coefficients of an engine that nobody measured: the geometric mean of the measured ones."""
    known = list(engines)
    return {name: math.exp(fmean(math.log(engine[name]) for engine in known)) for name in known[0]}
