"""Looks for places of separate prefill and decode: each side where it fits alone, then both together."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from fleet.placement.decision import Rejection
from fleet.placement.option import Found, Option
from fleet.placement.pair import (
    PairAtLoad,
    PairEstimate,
    PairOption,
    PairSide,
    is_near,
    pair_at_load,
    pair_missed,
    pair_speed,
)
from fleet.plan_wish import Reason
from fleet.spec import EngineName, Objectives, Pool, Spec

AtLoads = dict[tuple[object, ...], PairAtLoad]
"""By model, plans and kinds of place: pools that differ in their names share them."""


def search_pairs(spec: Spec, engine: EngineName, version: str, search: Callable[[Spec], Found | None]) -> Found | None:
    """Every pair of places on which both sides fit as they are written; else why one does not."""
    fits: list[list[Option]] = []
    rejections: list[Rejection] = []
    for name, side in (("prefill", spec.pools.prefill), ("decode", spec.pools.decode)) if spec.pools else ():
        found = search(_alone(spec, side))
        if found is None:
            return None
        rejections += (replace(item, reason=f"{name}: {item.reason}") for item in found.rejections)
        fits.append([option for option in found.options if isinstance(option, Option)])
        if not fits[-1]:
            return Found((), tuple(rejections), len(rejections), found.nearest)
    options: list[PairOption] = []
    at_loads: AtLoads = {}
    for prefill, decode in _near(*fits):
        option = _together(spec, engine, prefill, decode, at_loads)
        reason = pair_missed(option.estimate, spec.objectives, spec.scaling)
        if reason is None:
            options.append(option)
        else:
            rejections.append(_rejection(option, engine, version, reason))
    return Found(tuple(options), tuple(rejections), len(options) + len(rejections))


def _alone(spec: Spec, side: Pool) -> Spec:
    """One side as a manifest of its own; of the objectives it has the lengths of requests alone."""
    wished = spec.objectives or Objectives()
    lengths = Objectives(input_tokens=wished.input_tokens, output_tokens=wished.output_tokens)
    own = {"hardware": side.hardware, "parallelism": side.parallelism, "objectives": lengths}
    return spec.model_copy(update={**own, "pools": None})


def _near(prefill: Sequence[Option], decode: Sequence[Option]) -> Iterator[tuple[Option, Option]]:
    """Pairs of one model; those that stand in one zone where there are any."""
    pairs = [(one, other) for one, other in product(prefill, decode) if one.model.key == other.model.key]
    near = [(one, other) for one, other in pairs if is_near(one.place, other.place)]
    yield from near or pairs


def _together(spec: Spec, engine: EngineName, prefill: Option, decode: Option, at_loads: AtLoads) -> PairOption:
    one, other = _side(prefill), _side(decode)
    key = (prefill.model.key, is_near(one.place, other.place), *_kind(one), *_kind(other))
    if key not in at_loads:
        speed = pair_speed(prefill.model, one, other, spec, engine)
        at_loads[key] = pair_at_load(speed, spec.objectives, spec.scaling)
    return PairOption(prefill.model, PairEstimate.of(one, other, at_loads[key]))


def _side(option: Option) -> PairSide:
    found = option.estimate
    return PairSide(option.place, option.judged, option.nodes, found.price, found.gpu_share, option.replica_bytes)


def _kind(side: PairSide) -> tuple[object, ...]:
    return side.plan, side.place.instance.name, side.place.mig_profile


def _rejection(option: PairOption, engine: EngineName, version: str, reason: Reason) -> Rejection:
    found = option.estimate
    return Rejection(
        engine,
        version,
        reason.rule,
        reason.message,
        found.instance_type,
        found.split,
        option.model.id,
        dict(reason.evidence),
        found.pool,
        option.model.quantization,
    )
