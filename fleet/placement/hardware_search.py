"""Looks for the plan of one engine version on every place: it fits there, or the rule and numbers that reject it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from fleet.facts import Facts
from fleet.placement.asking import WITH_NEIGHBOURS, wish_of
from fleet.placement.decision import Rejection
from fleet.placement.estimate import Estimate, unmet
from fleet.placement.ground import ModelOption, Origin, Place, model_options, places, pool_refusal
from fleet.placement.looking import GpuKind, Ground, Kind, OnGpu, ground_of, kind_of
from fleet.placement.option import Found, Miss, Option
from fleet.placement.pair_search import search_pairs
from fleet.plan_judgement import Judged
from fleet.plan_wish import PlanWish, Reason
from fleet.pool_filling import Load
from fleet.pool_match import too_many
from fleet.prices import PriceTable
from fleet.prices import bundled as bundled_prices
from fleet.spec import EngineName, Spec

ModelKey = tuple[str, str | None]
"""Id and quantisation."""


@dataclass(frozen=True, slots=True)
class Search:
    """One engine version looking for hardware."""

    spec: Spec
    engine: EngineName
    version: str
    prices: PriceTable
    _grounds: dict[tuple[ModelKey, Kind], Ground] = field(default_factory=dict, compare=False)
    """By model and kind of place."""
    _gpus: dict[tuple[ModelKey, GpuKind], OnGpu] = field(default_factory=dict, compare=False)
    _wishes: dict[tuple[str | None, Kind], PlanWish] = field(default_factory=dict, compare=False)
    """By quantisation and kind of place."""
    _looks: dict[tuple[ModelKey, Kind, str, str], Option | Miss] = field(default_factory=dict, compare=False)
    """By model, kind of place, instance type and purchase, where the pool has no limit."""

    def look(self, model: ModelOption, place: Place, kind: Kind) -> Option | Miss:
        """What a place is good for: the same as another one that differs in its pool's name and zone alone."""
        if place.pool is not None and place.pool.max_nodes is not None:
            return _look(self.ground(model, place, kind), self, place)
        key = (model.key, kind, place.instance.name, place.purchase)
        found = self._looks.get(key)
        if found is None:
            found = self._looks[key] = _look(self.ground(model, place, kind), self, place)
        return found.at(place) if isinstance(found, Option) else found

    def ground(self, model: ModelOption, place: Place, kind: Kind) -> Ground:
        """What the planner says of a place, worked out once for all of its kind."""
        found = self._grounds.get((model.key, kind))
        if found is None:
            found = self._grounds[model.key, kind] = self._looked_at(model, place, kind)
        return found

    def _looked_at(self, model: ModelOption, place: Place, kind: Kind) -> Ground:
        wish = self._wishes.get((model.quantization, kind))
        if wish is None:
            wish = wish_of(self.spec, place, self.engine, self.version, model.quantization)
            self._wishes[model.quantization, kind] = wish
        on = self._gpus.get((model.key, kind[0]))
        if on is None:
            on = self._gpus[model.key, kind[0]] = OnGpu.of(self.spec, self.engine, model, place, wish)
        return ground_of(on, place, wish)

    def rejection(self, reason: Reason, place: Place, model: ModelOption | None = None, plan: str = "") -> Rejection:
        """A place that is not taken."""
        return Rejection(
            self.engine,
            self.version,
            reason.rule,
            reason.message,
            place.instance.name,
            plan or None,
            None if model is None else model.id,
            dict(reason.evidence),
            None if place.pool is None else place.pool.name,
            None if model is None else model.quantization,
        )


def search_hardware(
    spec: Spec, engine: EngineName, version: str, facts: Facts, *, at_load: Sequence[str] = ()
) -> Found | None:
    """Every place judged; ``None`` when no configuration of the model is known, so that nothing can be said.

    ``at_load`` = quantisations that this engine version makes of 16-bit weights.
    """
    models = model_options(spec, facts, at_load)
    if not models:
        return None
    if spec.pools is not None:
        return search_pairs(spec, engine, version, partial(_searched, engine, version, facts, at_load))
    search = Search(spec, engine, version, facts.prices or bundled_prices())
    options: list[Option] = []
    rejections = list(_closed_pools(search, facts))
    looked, nearest = len(rejections), None
    open_places = [(place, kind_of(place)) for place in places(spec, facts)]
    for model in models:
        for place, kind in open_places:
            looked += 1
            found = search.look(model, place, kind)
            if isinstance(found, Option):
                options.append(found)
                continue
            rejections.append(search.rejection(found.reason, place, model, found.ground.words))
            if model.origin is Origin.ASKED:
                nearest = _nearer(nearest, found.ground)
    if not looked:
        rejections.append(_nowhere(spec, engine, version))
    return Found(tuple(options), tuple(rejections), looked, nearest)


def _searched(engine: EngineName, version: str, facts: Facts, at_load: Sequence[str], side: Spec) -> Found | None:
    return search_hardware(side, engine, version, facts, at_load=at_load)


def _nearer(one: Ground | None, other: Ground) -> Ground | None:
    """The one that misses by fewer bytes, of those that do not fit."""
    if other.judged.fits != "no":
        return one
    return other if one is None or other.judged.shortage < one.judged.shortage else one


def _closed_pools(search: Search, facts: Facts) -> Iterator[Rejection]:
    for pool in facts.pools:
        reason = pool_refusal(search.spec, pool, facts)
        if reason is not None:
            place = Place(pool.instance, pool.purchase, pool.sharing.mode, 0, pool)
            yield search.rejection(reason, place)


def _look(ground: Ground, search: Search, place: Place) -> Option | Miss:
    """The first plan of a place that fits and meets the objectives, or why the preferred one is not taken."""
    judged = ground.judged
    reason = ground.unfit or _too_many_nodes(judged, place) or ground.refusal
    if reason is not None:
        return Miss(reason, ground)
    option = _option(search, ground, place, judged)
    missed = _missed(search.spec, option)
    if missed is None:
        return option
    for other in ground.plans[1:]:
        option = _option(search, ground, place, other)
        if _missed(search.spec, option) is None:
            return option
    return Miss(missed, ground)


def _too_many_nodes(judged: Judged, place: Place) -> Reason | None:
    nodes = -(-judged.plan.gpus // place.instance.gpus)
    if nodes <= place.nodes:
        return None
    message = f"{judged.plan} takes {nodes} nodes; {place.nodes} {place.instance.name} can be had for one replica"
    return Reason("nodes", message, {"nodes": nodes, "available": place.nodes})


def _option(search: Search, ground: Ground, place: Place, judged: Judged) -> Option:
    gpus = judged.plan.gpus
    share = ground.wish.gpu_memory_utilization if place.sharing in WITH_NEIGHBOURS else None
    price = search.prices.price(place.instance.name, place.purchase)
    found = Estimate(ground.at_load(judged.plan), price, place.node_part(gpus) * (share or 1.0))
    return Option(ground.on.model, place, judged, -(-gpus // place.instance.gpus), found, share)


def _missed(spec: Spec, option: Option) -> Reason | None:
    """The first objective that it misses, or too few nodes for all replicas; lengths of requests are a rule's."""
    is_open, generates = spec.hardware is None, option.model.model.is_generative
    missed = unmet(option.estimate, spec.objectives, spec.scaling, is_open=is_open, generates=generates)
    reason = next(missed, None)
    pool = option.place.pool
    if reason is not None or pool is None or pool.max_nodes is None:
        return reason
    load = Load("the deployment", option.plan.gpus, option.estimate.replicas, option.replica_bytes or 0)
    return too_many(pool, (), load)


def _nowhere(spec: Spec, engine: EngineName, version: str) -> Rejection:
    wished = spec.hardware
    what = f"{wished.instance_type} ({wished.purchase})" if wished else "any instance"
    return Rejection(engine, version, "no-pool", f"no instance is known as {what}")
