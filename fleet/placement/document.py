"""A choice as a document: the same keys for `enginehouse pin -o json` and for ``POST /v1/placements``."""

from dataclasses import asdict
from typing import Any

from fleet.latency_interval import Interval
from fleet.parallel_plan import ParallelPlan
from fleet.placement.decision import Candidate, Choice, EngineBuild, Rejection, Score
from fleet.placement.estimate import Estimate
from fleet.placement.pair import PairEstimate, PairSide

Document = dict[str, Any]


def choice_document(choice: Choice) -> Document:
    """Everything that placement decided, as plain data; what is not known is null, and no key is ever left out."""
    pinned = choice.pinned
    return {
        "choice": None if choice.chosen is None else candidate_document(choice.chosen),
        "considered": choice.considered,
        "rejections": [rejection_document(item) for item in choice.rejections],
        "would_fit": list(choice.would_fit),
        "notes": list(choice.notes),
        "violations": [item.model_dump(mode="json") for item in choice.violations],
        "pinned": None if pinned is None else pinned.model_dump(mode="json", exclude_none=True),
        "identity": None if pinned is None else pinned.identity,
        "canary": None if choice.canary is None else choice_document(choice.canary),
    }


def candidate_document(candidate: Candidate) -> Document:
    """One way to serve a manifest."""
    return {
        "engine": str(candidate.engine),
        "version": candidate.version,
        "model_id": candidate.model_id,
        "quantization": candidate.quantization,
        **_where(candidate),
        "pools": None if candidate.pair is None else _pools(candidate.pair),
        "estimate": None if candidate.estimate is None else _estimate(candidate.estimate),
        "build": None if candidate.build is None else _build(candidate.build),
        "preference": candidate.preference.score,
        "reason": candidate.preference.reason,
        "scores": [_score(item) for item in candidate.scores],
        "total": candidate.total,
    }


def rejection_document(item: Rejection) -> Document:
    """A candidate that was not taken."""
    return {
        "engine": str(item.engine),
        "version": item.version,
        "rule": item.rule,
        "reason": item.reason,
        "instance_type": item.instance_type,
        "pool": item.pool,
        "plan": item.plan,
        "model_id": item.model_id,
        "quantization": item.quantization,
        "evidence": dict(item.evidence),
    }


def _where(candidate: Candidate) -> Document:
    """Where its replicas stand and how they are split; null where each side says it."""
    plan = candidate.plan
    if candidate.pair is not None:
        return dict.fromkeys(("instance_type", "pool", "sharing", "purchase", "plan"))
    return {
        "instance_type": candidate.instance_type,
        "pool": candidate.pool,
        "sharing": candidate.sharing,
        "purchase": candidate.purchase,
        "plan": None if plan is None else _plan(plan, candidate.nodes),
    }


def _plan(plan: ParallelPlan, nodes: int | None) -> Document:
    return {
        "tp": plan.tensor,
        "pp": plan.pipeline,
        "dp": plan.data,
        "ep": plan.expert or 1,
        "cp": plan.context,
        "gpus": plan.gpus,
        "nodes": nodes,
    }


def _estimate(estimate: Estimate | PairEstimate) -> Document:
    latency, price = estimate.latency, estimate.price
    return {
        "tpot": _interval(latency.tpot),
        "ttft": _interval(latency.ttft),
        "tokens_per_second": _interval(estimate.tokens_per_second),
        "basis": latency.basis,
        "concurrency": estimate.concurrency,
        "replicas": estimate.replicas,
        "usd_per_hour": estimate.usd_per_hour,
        "priced_on": None if price is None else price.as_of,
    }


def _pools(found: PairEstimate) -> Document:
    load, throughput = found.at_load.found, found.at_load.throughput
    first = None if load is None else load.first_token
    return {
        "prefill": _side(found.prefill, None if throughput is None else throughput.prefill),
        "decode": _side(found.decode, None if throughput is None else throughput.decode),
        "limited_by": None if throughput is None else throughput.limited_by.value,
        "prefill_utilisation": None if load is None else load.prefill_utilisation,
        "first_token_seconds": None if first is None else asdict(first),
        "reasons": list(found.latency.reasons),
    }


def _side(side: PairSide, tokens_per_second: Interval | None) -> Document:
    place = side.place
    return {
        "instance_type": place.instance.name,
        "pool": None if place.pool is None else place.pool.name,
        "sharing": place.sharing.value,
        "purchase": place.purchase,
        "plan": _plan(side.plan, side.nodes),
        "replicas": side.replicas,
        "tokens_per_second": _interval(tokens_per_second),
        "usd_per_hour": side.usd_per_hour,
        "priced_on": None if side.price is None else side.price.as_of,
    }


def _build(build: EngineBuild) -> Document:
    job = {"name": build.job, "image": build.image, "argv": list(build.argv)}
    return {"reason": build.reason, "seconds": _interval(build.seconds), "job": job}


def _interval(found: Interval | None) -> Document | None:
    return None if found is None else {"low": found.low, "mid": found.mid, "high": found.high}


def _score(item: Score) -> Document:
    return {"name": item.name, "weight": item.weight, "value": item.value, "reason": item.reason}
