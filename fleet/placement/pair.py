"""Separate prefill and decode on their places: how many replicas of each, how fast, at what cost, and what fails."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fleet.kv_transfer import Uplink
from fleet.latency import Latency, no_latency
from fleet.latency_interval import Interval
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.placement.estimate import cost_missed, is_late, latency_missed, lengths_of
from fleet.placement.ground import ModelOption, Place
from fleet.plan_judgement import Judged
from fleet.plan_wish import EvidenceValue, Reason
from fleet.pool_filling import Load
from fleet.pool_match import too_many
from fleet.prices import Price
from fleet.separate_pools import PairLatency, PairThroughput, Replicas, SeparatePools, Side, separate_pools
from fleet.serving import Serving
from fleet.spec import EngineName, Objectives, Scaling, Spec

ROUNDING = 1 + 1e-9
"""A rate that is just what some replicas take counts as above it."""


@dataclass(frozen=True, slots=True)
class PairSide:
    """One side: its plan on its place, and how many of it there are."""

    place: Place
    judged: Judged
    nodes: int
    """Of one replica."""
    price: Price | None
    gpu_share: float
    """Of the nodes of a replica: several replicas can share a node."""
    replica_bytes: int | None = None
    """What a replica takes of a shared GPU, without its context and graphs."""
    replicas: int = 1

    @property
    def plan(self) -> ParallelPlan:
        """The plan that fits."""
        return self.judged.plan

    @property
    def usd_per_hour(self) -> float | None:
        """Of all replicas of this side; ``None`` while the price is not known."""
        return None if self.price is None else self.price.usd_per_hour * self.gpu_share * self.replicas

    def load(self, name: str) -> Load:
        """What the side puts on its node pool."""
        return Load(name, self.plan.gpus, self.replicas, self.replica_bytes or 0)


@dataclass(frozen=True, slots=True)
class PairAtLoad:
    """What the wished load makes of both sides, wherever they stand and whatever they cost."""

    replicas: Replicas
    latency: Latency
    found: PairLatency | None = None
    """``None`` = no speed is known, see the reasons of the latency; so is the throughput then."""
    throughput: PairThroughput | None = None


@dataclass(frozen=True, slots=True)
class PairEstimate:
    """Expected figures of both sides together at the wished load."""

    prefill: PairSide
    decode: PairSide
    at_load: PairAtLoad

    @classmethod
    def of(cls, prefill: PairSide, decode: PairSide, at_load: PairAtLoad) -> "PairEstimate":
        """With as many replicas of each side as the load takes."""
        count = at_load.replicas
        return cls(replace(prefill, replicas=count.prefill), replace(decode, replicas=count.decode), at_load)

    @property
    def latency(self) -> Latency:
        """At the wished rate."""
        return self.at_load.latency

    @property
    def sides(self) -> tuple[tuple[str, PairSide], ...]:
        """By name."""
        return ("prefill", self.prefill), ("decode", self.decode)

    @property
    def replicas(self) -> int:
        """Of both sides."""
        return self.prefill.replicas + self.decode.replicas

    @property
    def concurrency(self) -> int:
        """Requests in flight on one decode replica at the wished rate."""
        found = self.at_load.found
        return 1 if found is None else found.concurrency or 1

    @property
    def tokens_per_second(self) -> Interval | None:
        """Output tokens of both sides together at saturation."""
        throughput = self.at_load.throughput
        return None if throughput is None else throughput.total

    @property
    def price(self) -> Price | None:
        """The less certain one of both: an estimate, else the older; ``None`` where one is not known."""
        one, other = self.prefill.price, self.decode.price
        if one is None or other is None:
            return None
        return min(one, other, key=lambda price: (not price.is_estimate, price.since))

    @property
    def usd_per_hour(self) -> float | None:
        """The sum of both sides; ``None`` where one price is not known."""
        one, other = self.prefill.usd_per_hour, self.decode.usd_per_hour
        return None if one is None or other is None else one + other

    @property
    def split(self) -> str:
        """Replicas and plans, as a person reads them."""
        return ", ".join(f"{name} {side.replicas} x {side.plan}" for name, side in self.sides)

    @property
    def instance_type(self) -> str:
        """Of both sides."""
        return self.joined(lambda side: side.place.instance.name)

    @property
    def pool(self) -> str | None:
        """The node pools of both sides; ``None`` where the environment has none."""
        pools = [side.place.pool for _, side in self.sides if side.place.pool is not None]
        return self.joined(lambda side: side.place.pool.name if side.place.pool else "") if pools else None

    def joined(self, word: Callable[[PairSide], str]) -> str:
        """A word of both sides, once where they agree."""
        return " + ".join(dict.fromkeys(word(side) for _, side in self.sides))


@dataclass(frozen=True, slots=True)
class PairOption:
    """Plans that fit on the places of both sides."""

    model: ModelOption
    estimate: PairEstimate

    @property
    def nodes(self) -> int:
        """Of the wider replica."""
        return max(side.nodes for _, side in self.estimate.sides)

    @property
    def gpus(self) -> int:
        """Of a replica of each side."""
        return sum(side.plan.gpus for _, side in self.estimate.sides)

    @property
    def bought(self) -> str:
        """The instances and how they are bought."""
        return self.estimate.joined(lambda side: side.place.bought)

    @property
    def words(self) -> str:
        """Where both sides stand."""
        return "; ".join(f"{name} {side.plan} on {side.place.instance.name}" for name, side in self.estimate.sides)


def pair_speed(
    model: ModelOption, prefill: PairSide, decode: PairSide, spec: Spec, engine: EngineName
) -> SeparatePools | Missing:
    """How fast one replica of each side is for the lengths of the manifest's requests."""
    kv_dtype = spec.batch.kv_cache_dtype if spec.batch else "auto"
    apart = _zones_apart(prefill.place, decode.place)
    sides = []
    for side in (prefill, decode):
        on = (model.model, side.plan, side.place.speed_gpu, engine, model.quantization, kv_dtype)
        link = apart or Uplink.of(side.place.instance, side.place.slices_per_gpu)
        sides.append(Side(Serving(*on, *lengths_of(spec.objectives)), link))
    return separate_pools(*sides)


def is_near(prefill: Place, decode: Place) -> bool:
    """Whether both sides may stand in one availability zone: a pool without a zone stands in any."""
    return _zones_apart(prefill, decode) is None


def _zones_apart(prefill: Place, decode: Place) -> Missing | None:
    one, other = (None if place.pool is None else place.pool.zone for place in (prefill, decode))
    if one is None or other is None or one == other:
        return None
    message = (
        f"how long the cache takes from zone {one} to zone {other} is not known: EFA does not leave a zone; give both "
        "sides a pool of one zone"
    )
    return Missing("latency", "zone", message)


def pair_at_load(pools: SeparatePools | Missing, objectives: Objectives | None, scaling: Scaling) -> PairAtLoad:
    """The replicas that the wished rate and latency take, at least ``scaling.min`` of each side; nothing refuses."""
    wished, least = objectives or Objectives(), max(1, scaling.min)
    if isinstance(pools, Missing):
        return PairAtLoad(Replicas(least, least), no_latency(pools))
    replicas = _enough(pools, wished, _least(pools, wished, least), scaling.max)
    found = pools.at_rate(wished.requests_per_second or 0.0, replicas)
    return PairAtLoad(replicas, found.latency, found, pools.throughput(replicas))


def _least(pools: SeparatePools, wished: Objectives, least: int) -> Replicas:
    """That the rate takes: each side has to make more than what comes, or the queue before it never ends."""
    rate = (wished.requests_per_second or 0.0) * ROUNDING
    prefill, decode = pools.most_of_each
    return Replicas(max(least, math.floor(rate / prefill) + 1), max(least, math.floor(rate / decode) + 1))


def _enough(pools: SeparatePools, wished: Objectives, least: Replicas, most: int) -> Replicas:
    """The fewest with which the wished latency is met where more of them help, decode before prefill; else the least.

    ``scaling.max`` holds for each side.
    """

    def is_met(replicas: Replicas) -> bool:
        return not is_late(pools.at_rate(wished.requests_per_second or 0.0, replicas).latency, wished)

    widest = Replicas(most, most)
    if is_met(least) or max(least.prefill, least.decode) > most or not is_met(widest):
        return least
    decode = _fewest(least.decode, most, lambda count: is_met(Replicas(most, count)))
    return Replicas(_fewest(least.prefill, most, lambda count: is_met(Replicas(count, decode))), decode)


def _fewest(low: int, high: int, is_met: Callable[[int], bool]) -> int:
    """The first count from ``low`` with which it is met; it is with ``high``, and with more than one that meets it."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_met(middle) else (middle + 1, high)
    return high


def pair_missed(found: PairEstimate, objectives: Objectives | None, scaling: Scaling) -> Reason | None:
    """The first objective that even the favourable end misses, or a node pool with too few nodes for both sides.

    Hardware of separate pools is always written, so what is not known refuses nothing.
    """
    return next(_missed(found, objectives, scaling), None)


def _missed(found: PairEstimate, objectives: Objectives | None, scaling: Scaling) -> Iterator[Reason]:
    if objectives is not None:
        where = f"at {found.concurrency} in flight on a decode replica ({found.split})"
        yield from latency_missed(found.latency, objectives, where)
        yield from _rate_missed(found, objectives, scaling)
        yield from cost_missed(found.usd_per_hour, found.price, objectives, found.split)
    yield from _crowded(found)


def _rate_missed(found: PairEstimate, objectives: Objectives, scaling: Scaling) -> Iterator[Reason]:
    name, side = max(found.sides, key=lambda item: item[1].replicas)
    if side.replicas <= scaling.max:
        return
    message = f"{side.replicas} {name} replicas are needed for {objectives.requests_per_second:g} requests a second; "
    evidence: dict[str, EvidenceValue] = {"side": name, "replicas": side.replicas, "max": scaling.max}
    yield Reason("objective-rate", f"{message}max is {scaling.max} of each side", evidence)


def _crowded(found: PairEstimate) -> Iterator[Reason]:
    """Both sides on one node pool stand beside each other."""
    before: dict[str, Load] = {}
    for name, side in found.sides:
        pool, load = side.place.pool, side.load(name)
        if pool is None or pool.max_nodes is None:
            continue
        others = tuple(other for where, other in before.items() if where == pool.name)
        reason = too_many(pool, others, load)
        if reason is not None:
            yield reason
        before[pool.name] = load
