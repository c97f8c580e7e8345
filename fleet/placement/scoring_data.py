"""The weights of placement and the judgements beside them: ``fleet/data/placement_weights.json``."""

from functools import cache
from importlib.resources import files

from fleet.spec import EngineName, Workload
from fleet.value import Value


class Days(Value):
    """Between releases: what counts as 1 and as 0."""

    best: float
    worst: float


class Suits(Value):
    """A closer preference for an engine where a manifest says more than its workload; the first that applies counts."""

    engine: EngineName
    workloads: tuple[Workload, ...]
    text_only: bool = False
    disaggregation: str | None = None
    input_over_output: float | None = None
    """Prompts at least so many times longer than answers, with prefix caching asked for."""
    score: float
    reason: str


class HostedLimits(Value):
    """When a hosted engine is worth a word."""

    ttft_seconds: float
    """Below this first token."""
    parameters: int
    """From this size on."""
    reason: str


class Weights(Value):
    """``placement_weights.json``."""

    source: str
    weights: dict[str, float]
    cadence_days: Days
    tpot_seconds: float
    """Per output token, where no objective says it: about as fast as people read."""
    alternative_quality: float
    """The score of anything but the model as it is asked for."""
    share_of_all: tuple[EngineName, ...]
    """Engines whose share of memory is one of the whole GPU, whatever their neighbours took before."""
    suits: tuple[Suits, ...]
    hosted: HostedLimits


@cache
def weights() -> Weights:
    """The weights that came with the program."""
    text = files("fleet").joinpath("data", "placement_weights.json").read_text(encoding="utf-8")
    return Weights.model_validate_json(text)
