"""Sentences of placement: why a candidate lost, what would fit, what a choice stands on."""

from collections.abc import Sequence

from fleet.facts import Facts
from fleet.manifest import Manifest
from fleet.placement.decision import Candidate, Rejection
from fleet.placement.engine_walk import Accepted
from fleet.placement.ground import model_options, places
from fleet.placement.hardware_search import Found, wish_of
from fleet.planner import plan
from fleet.spec import Spec


def outscored(other: Candidate, chosen: Candidate) -> Rejection:
    """Why a candidate that would do is not taken: the parts of the score in which it is behind, the heaviest first."""
    return Rejection(
        other.engine,
        other.version,
        "score" if other.scores else "preference",
        _why_behind(other, chosen),
        other.instance_type,
        str(other.plan) if other.plan else None,
        other.model_id,
        {"score": round(other.total, 3), "score_of_chosen": round(chosen.total, 3)},
    )


def _why_behind(other: Candidate, chosen: Candidate) -> str:
    if other.is_prerelease and not chosen.is_prerelease:
        return f"no final version of it is acceptable, only {other.version}; {chosen.engine} {chosen.version} is final"
    if other.estimate is not None and other.estimate.latency.basis == "none":
        return f"how fast it would be is not known ({'; '.join(other.estimate.latency.reasons)})"
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


def notes_of(manifest: Manifest, chosen: Candidate) -> tuple[str, ...]:
    """What the choice stands on."""
    if chosen.plan is None:
        model = manifest.spec.model.id
        return (
            f"no configuration of {model} is known, so memory, parallelism and speed were not looked at; put its "
            f"config.json into the environment as models/{model.replace('/', '--', 1)}.json",
        )
    estimate = chosen.estimate
    if estimate is None or estimate.price is None:
        return (f"the price of {chosen.instance_type} ({chosen.purchase}) is not known",)
    return (f"prices as of {estimate.price.as_of}; latency is {estimate.latency.basis}",)


def nearest_miss(spec: Spec, accepted: Sequence[tuple[Accepted, Found | None]], facts: Facts) -> tuple[str, ...]:
    """What would make the manifest fit, for the first engine that the rules accept: one change at a time."""
    if not accepted or accepted[0][1] is None:
        return ()
    first = accepted[0][0]
    models, place = model_options(spec, facts), next(places(spec, facts), None)
    if not models or place is None:
        return ()
    wish = wish_of(first.spec, place, first.engine, first.version, models[0].quantization)
    answer = plan(models[0].model, wish)
    return tuple(item.message for item in answer.counterfactuals)
