"""Sentences of placement: why a candidate lost, what would fit, what a choice stands on."""

import math
from collections.abc import Iterator, Sequence

from fleet.facts import Facts
from fleet.manifest import Manifest
from fleet.placement.decision import Candidate, Rejection
from fleet.placement.engine_walk import Accepted
from fleet.placement.ground import Origin
from fleet.placement.hardware_search import search_hardware
from fleet.placement.option import Found
from fleet.placement.pair import PairEstimate
from fleet.plan_counterfactual import counterfactuals
from fleet.spec import Spec


def outscored(others: Sequence[Candidate], chosen: Candidate) -> Iterator[Rejection]:
    """Why candidates that would do are not taken: what they are behind in, the heaviest part of the score first."""
    of_chosen, reasons = round(chosen.total, 3), dict[int, str]()
    for other in others:
        alike = id(other if other.estimate is None else other.estimate)  # pools that are alike share the estimate
        reason = reasons.get(alike)
        if reason is None:
            reason = reasons[alike] = _why_behind(other, chosen)
        yield Rejection(
            other.engine,
            other.version,
            "score" if other.scores else "preference",
            reason,
            other.instance_type,
            other.split,
            other.model_id,
            {"score": round(other.total, 3), "score_of_chosen": of_chosen},
            other.pool,
            other.quantization,
        )


def _why_behind(other: Candidate, chosen: Candidate) -> str:
    if other.origin > chosen.origin:
        return _later(other, chosen)
    if other.is_prerelease and not chosen.is_prerelease:
        return f"no final version of it is acceptable, only {other.version}; {chosen.engine} {chosen.version} is final"
    if other.estimate is not None and other.estimate.latency.basis == "none":
        return f"how fast it would be is not known ({'; '.join(other.estimate.latency.reasons)})"
    unpriced = other.estimate is not None and other.estimate.price is None
    if unpriced and chosen.estimate is not None and chosen.estimate.price is not None:
        return f"the price of {other.instance_type} ({other.purchase}) is not known, that of {chosen.instance_type} is"
    best = {score.name: score for score in chosen.scores}
    behind = [
        (score.weight * (best[score.name].value - score.value), score, best[score.name])
        for score in other.scores
        if score.name in best and best[score.name].value > score.value
    ]
    behind.sort(key=lambda item: -item[0])
    where = f"{chosen.engine} {chosen.version}" + (f" on {chosen.instance_type}" if chosen.instance_type else "")
    if not behind:
        return f"as good as {where}, but {other.residuals} residuals against {chosen.residuals}"
    lost = "; ".join(f"{score.name}: {score.reason} against {mine.reason}" for _, score, mine in behind[:2])
    return f"{other.total:.2f} against {chosen.total:.2f} of {where}: {lost}"


def _later(other: Candidate, chosen: Candidate) -> str:
    """Why what is nearer to the wish is taken first, and what the other would have saved."""
    found, taken = other.estimate, chosen.estimate
    cost = None if found is None else found.usd_per_hour
    price = None if taken is None else taken.usd_per_hour
    saving = f"; it would cost ${cost:,.2f} an hour, not ${price:,.2f}" if cost and price and cost < price else ""
    return f"{_AS[other.origin]} is taken only where {_AS[chosen.origin]} can't be; {chosen.model_id} can{saving}"


_AS = {
    Origin.ASKED: "the model itself",
    Origin.QUANTIZED: "a quantised checkpoint of it",
    Origin.AT_LOAD: "the model quantised as it is loaded",
    Origin.ALTERNATIVE: "an alternative",
}


def notes_of(manifest: Manifest, chosen: Candidate, rejections: Sequence[Rejection]) -> tuple[str, ...]:
    """What the choice stands on."""
    if chosen.split is None:
        model = manifest.spec.model.id
        return (
            f"no configuration of {model} is known, so memory, parallelism and speed were not looked at; put its "
            f"config.json into the environment as models/{model.replace('/', '--', 1)}.json",
        )
    estimate = chosen.estimate
    build = () if chosen.build is None else (f"job {chosen.build.job} runs first: {chosen.build.reason}",)
    if chosen.origin is Origin.AT_LOAD:
        build = (*build, _at_load(chosen, rejections))
    if chosen.pair is not None:
        build = (*build, *_of_pair(chosen.pair))
    if estimate is None or estimate.price is None:
        return (*build, f"the price of {chosen.instance_type} ({chosen.purchase}) is not known")
    return (*build, f"prices as of {estimate.price.as_of}; latency is {estimate.latency.basis}")


def _of_pair(found: PairEstimate) -> Iterator[str]:
    """What the written sides stand on, and what of their speed is not known."""
    yield f"prefill and decode stay as they are written ({found.split}); nobody measured separate pools"
    if found.latency.ttft is None:
        yield f"the time to the first token is not known: {found.latency.reasons[-1]}"


def _at_load(chosen: Candidate, rejections: Sequence[Rejection]) -> str:
    """That the answers change, and why the checkpoint is not taken as it is."""
    as_stored = (item for item in rejections if item.model_id == chosen.model_id and item.quantization is None)
    why = next((f" ({item.instance_type}: {item.reason})" for item in as_stored if item.engine == chosen.engine), "")
    return (
        f"{chosen.model_id} is loaded as {chosen.quantization}, since it can't be served as it is stored{why}; what "
        "that does to its answers was not measured: compare them before it serves, or list a quantised checkpoint"
    )


def doubts(searched: Found | None) -> tuple[str, ...]:
    """What the planner says against a plan that is kept because it runs."""
    if searched is None or any(option.model.origin is Origin.ASKED for option in searched.options):
        return ()
    return tuple(f"kept as it runs, though the planner says: {item.reason}" for item in searched.rejections[:1])


def nearest_miss(
    spec: Spec, accepted: Sequence[tuple[Accepted, Found | None]], rejections: Sequence[Rejection], facts: Facts
) -> tuple[str, ...]:
    """What would make the manifest fit: one change of the plan that misses by least, of an objective, or of place."""
    found = [(item, searched) for item, searched in accepted if searched is not None]
    misses = [searched.nearest for _, searched in found if searched.nearest is not None]
    nearest = min(misses, key=lambda miss: miss.judged.shortage, default=None)
    changes: list[str] = []
    if nearest is not None:
        where = f"{nearest.judged.plan} on {nearest.wish.instance}, {nearest.wish.engine}"
        changed = counterfactuals(nearest.on.figures, nearest.on.gpu, nearest.wish, nearest.field, nearest.judged)
        changes += [f"{item.message} ({where})" for item in changed]
    changes += _objectives(rejections)
    if not changes and found and (spec.hardware is not None or facts.pools):
        changes += _elsewhere(found[0][0], facts)
    return tuple(changes)


_CHANGES = (
    ("objective-tpot", "low_seconds", "objectives.tpot_p95_seconds of {:.3g}"),
    ("objective-ttft", "low_seconds", "objectives.ttft_p95_seconds of {:.3g}"),
    ("objective-rate", "replicas", "scaling.max of {:.0f}"),
    ("objective-cost", "usd_per_hour", "objectives.max_cost_per_hour of {:.2f}"),
)


def _objectives(rejections: Sequence[Rejection]) -> Iterator[str]:
    """The least that an objective would have to give way, and where."""
    for rule, key, words in _CHANGES:
        missed = [item for item in rejections if item.rule == rule]
        if missed:
            least = min(missed, key=lambda item: float(item.evidence[key]))
            where = f"{least.plan} on {least.instance_type}, {least.engine}"
            yield f"fits with {words.format(float(least.evidence[key]))} ({where})"


def _elsewhere(item: Accepted, facts: Facts) -> Iterator[str]:
    """The cheapest place beyond the manifest's hardware and the environment's pools."""
    spec = item.spec
    kept = {name: getattr(spec, name) for name in spec.model_fields_set - {"hardware", "parallelism"}}
    anywhere = facts.model_copy(update={"pools": ()})
    searched = search_hardware(Spec(**kept), item.engine, item.version, anywhere)
    options = [] if searched is None else [option for option in searched.options if option.model.origin is Origin.ASKED]
    if options:
        best = min(options, key=lambda option: (option.estimate.usd_per_hour or math.inf, option.gpus))
        yield f"fits on {best.words} ({item.engine} {item.version})"
