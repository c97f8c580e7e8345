"""Scores of candidates: suitability, latency headroom, cost, patch cadence, operations. Weights are data."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from itertools import pairwise
from statistics import median

from fleet.engine import EngineCatalogue, Preference
from fleet.manifest import Manifest
from fleet.placement.decision import Score
from fleet.placement.hardware_search import Option
from fleet.spec import EngineName, Objectives
from fleet.value import Value

NEUTRAL = 0.5
"""Where nothing is wished or known."""


class Days(Value):
    """Between releases: what counts as 1 and as 0."""

    best: float
    worst: float


class Weights(Value):
    """``placement_weights.json``."""

    source: str
    weights: dict[str, float]
    cadence_days: Days
    tpot_seconds: float
    """Per output token, where no objective says it: about as fast as people read."""
    alternative_quality: float
    """The score of a model that the manifest only lists as an alternative."""


@cache
def weights() -> Weights:
    """The weights that came with the program."""
    text = files("fleet").joinpath("data", "placement_weights.json").read_text(encoding="utf-8")
    return Weights.model_validate_json(text)


@dataclass(frozen=True, slots=True)
class EngineScores:
    """What does not depend on the hardware."""

    scores: tuple[Score, ...]
    build: str | None
    """Why the model has to be built for the engine first, or ``None``."""


def engine_scores(
    manifest: Manifest, name: EngineName, preference: Preference, catalogue: EngineCatalogue
) -> EngineScores:
    """Suitability, how often the engine is patched, and what it costs to run it."""
    build = catalogue.engine_build(manifest, name)
    days = cadence_days(name, catalogue)
    limits = weights().cadence_days
    paced = NEUTRAL if days is None else _between((limits.worst - days) / (limits.worst - limits.best))
    pace = "the days of its releases are not known" if days is None else f"a release every {days:g} days (median)"
    return EngineScores(
        (
            _score("preference", preference.score, preference.reason),
            _score("cadence", paced, pace),
        ),
        build,
    )


def operations(build: str | None, nodes: int | None) -> Score:
    """What it takes to run it: a build first, a replica over several nodes, or neither."""
    if build:
        return _score("operations", 0.0, build)
    if nodes and nodes > 1:
        return _score("operations", NEUTRAL, f"a replica spans {nodes} nodes, and fails with each of them")
    return _score("operations", 1.0, "starts from the checkpoint as it is, on one node")


def option_scores(option: Option, objectives: Objectives | None, cheapest: float | None) -> tuple[Score, ...]:
    """Headroom against the wished latency, cost against the cheapest candidate, and whether it is the wished model."""
    return (_latency(option, objectives), _cost(option, cheapest), _quality(option))


def cheapest_of(options: Sequence[Option]) -> float | None:
    """The lowest known cost an hour."""
    costs = [cost for option in options if (cost := option.estimate.usd_per_hour) is not None]
    return min(costs, default=None)


def cadence_days(name: EngineName, catalogue: EngineCatalogue) -> float | None:
    """The median of days between the uploads of known versions."""
    days = sorted({day for version in catalogue.versions(name) if (day := catalogue.released(name, version))})
    gaps = [(later - earlier).days for earlier, later in pairwise(map(date.fromisoformat, days))]
    return float(median(gaps)) if gaps else None


def _latency(option: Option, objectives: Objectives | None) -> Score:
    latency = option.estimate.latency
    if latency.tpot is None:
        return _score("latency", 0.0, "not known: no measured or stated rates of this GPU")
    wished = objectives.tpot_p95_seconds if objectives else None
    target = wished or weights().tpot_seconds
    words = f"{latency.tpot.mid * 1000:.3g} ms a token ({latency.basis}); "
    words += f"{target * 1000:g} ms are {'wished' if wished else 'taken, since no objective names any'}"
    # Twice as fast as the target is full headroom, just as fast is half of it.
    return _score("latency", _between(target / latency.tpot.mid / 2), words)


def _cost(option: Option, cheapest: float | None) -> Score:
    cost, price = option.estimate.usd_per_hour, option.estimate.price
    if cost is None or price is None or cheapest is None:
        return _score("cost", 0.0, f"the price of {option.place.instance.name} ({option.place.purchase}) is not known")
    return _score("cost", cheapest / cost, f"${cost:,.2f} an hour, priced {price.as_of}")


def _quality(option: Option) -> Score:
    if option.model.note:
        return _score("quality", weights().alternative_quality, f"an alternative: {option.model.note}")
    return _score("quality", 1.0, "the model that is asked for")


def _score(name: str, value: float, reason: str) -> Score:
    return Score(name, weights().weights[name], value, reason)


def _between(value: float) -> float:
    return max(0.0, min(1.0, value))
