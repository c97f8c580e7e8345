"""Scores of candidates: suitability, latency headroom, cost, patch cadence, operations. Weights are data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from statistics import median

from fleet.engine import EngineCatalogue, Preference
from fleet.placement.decision import EngineBuild, Score
from fleet.placement.ground import Origin
from fleet.placement.option import Option
from fleet.placement.pair import PairOption
from fleet.placement.scoring_data import weights
from fleet.spec import EngineName, Objectives

NEUTRAL = 0.5
"""Where nothing is wished or known."""


def engine_scores(name: EngineName, preference: Preference, catalogue: EngineCatalogue) -> tuple[Score, ...]:
    """What does not depend on the hardware: suitability, and how often the engine is patched."""
    days = cadence_days(name, catalogue)
    limits = weights().cadence_days
    paced = NEUTRAL if days is None else _between((limits.worst - days) / (limits.worst - limits.best))
    pace = "the days of its releases are not known" if days is None else f"a release every {days:g} days (median)"
    return (_score("preference", preference.score, preference.reason), _score("cadence", paced, pace))


def operations(build: EngineBuild | None, nodes: int | None) -> Score:
    """What it takes to run it: a build first, a replica over several nodes, or neither."""
    if build is not None:
        took = f"{build.seconds.low:.0f} to {build.seconds.high:.0f} s"
        return _score("operations", 0.0, f"{build.reason} ({took}, job {build.job})")
    if nodes and nodes > 1:
        return _score("operations", NEUTRAL, f"a replica spans {nodes} nodes, and fails with each of them")
    return _score("operations", 1.0, "starts from the checkpoint as it is, on one node")


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores of an engine's options. Thousands stand beside each other: what is the same for many is made once."""

    build: EngineBuild | None
    objectives: Objectives | None
    cheapest: float | None
    _known: dict[tuple[str, object], Score] = field(default_factory=dict, repr=False, compare=False)

    def of(self, option: Option | PairOption) -> tuple[Score, ...]:
        """Operations, headroom against the wished latency, cost against the cheapest, and the wish for the model."""
        latency = option.estimate.latency  # kept by the option, so that its id stays its own
        return (
            self._once("operations", option.nodes, lambda: operations(self.build, option.nodes)),
            self._once("latency", id(latency), lambda: _latency(option, self.objectives)),
            _cost(option, self.cheapest),
            self._once("quality", option.model.key, lambda: _quality(option)),
        )

    def _once(self, name: str, key: object, make: Callable[[], Score]) -> Score:
        found = self._known.get((name, key))
        if found is None:
            found = self._known[name, key] = make()
        return found


def cheapest_of(options: Sequence[Option | PairOption]) -> float | None:
    """The lowest known cost an hour; a place of unknown speed says nothing, since its replicas can't be counted."""
    known = [option for option in options if option.estimate.latency.basis != "none"]
    costs = [cost for option in known or options if (cost := option.estimate.usd_per_hour) is not None]
    return min(costs, default=None)


def cadence_days(name: EngineName, catalogue: EngineCatalogue) -> float | None:
    """The median of days between the uploads of known versions."""
    days = sorted({day for version in catalogue.versions(name) if (day := catalogue.released(name, version))})
    gaps = [(later - earlier).days for earlier, later in pairwise(map(date.fromisoformat, days))]
    return float(median(gaps)) if gaps else None


def _latency(option: Option | PairOption, objectives: Objectives | None) -> Score:
    """Twice as fast as the target is full headroom, just as fast is half of it; the tighter of both targets counts."""
    latency = option.estimate.latency
    wished = objectives or Objectives()
    target = wished.tpot_p95_seconds or weights().tpot_seconds
    said = "wished" if wished.tpot_p95_seconds else "taken, since no objective names any"
    sides = []
    if latency.tpot is not None:
        words = f"{latency.tpot.mid * 1000:.3g} ms a token ({latency.basis}); {target * 1000:g} ms are {said}"
        sides.append((_between(target / latency.tpot.mid / 2), words))
    if latency.ttft is not None and wished.ttft_p95_seconds is not None:
        first, limit = latency.ttft.mid, wished.ttft_p95_seconds
        words = f"first token after {first:.3g} s ({latency.basis}); {limit:g} s are wished"
        sides.append((_between(limit / first / 2), words))
    if not sides:
        return _score("latency", 0.0, "not known: no measured or stated rates of this GPU")
    return _score("latency", *min(sides))


def _cost(option: Option | PairOption, cheapest: float | None) -> Score:
    cost, price = option.estimate.usd_per_hour, option.estimate.price
    if cost is None or price is None or cheapest is None:
        return _score("cost", 0.0, f"the price of {option.bought} is not known")
    return _score("cost", _between(cheapest / cost), f"${cost:,.2f} an hour, priced {price.as_of}")


def _quality(option: Option | PairOption) -> Score:
    if option.model.origin is Origin.ASKED:
        return _score("quality", 1.0, "the model that is asked for")
    return _score("quality", weights().alternative_quality, option.model.note)


def _score(name: str, value: float, reason: str) -> Score:
    return Score(name, weights().weights[name], value, reason)


def _between(value: float) -> float:
    return max(0.0, min(1.0, value))
