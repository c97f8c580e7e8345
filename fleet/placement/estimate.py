"""What a plan is expected to do under a manifest's objectives: latency at its load, replicas, cost, and what fails."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from fleet.latency import Latency, Speed, no_latency, speed_of
from fleet.latency_interval import Interval
from fleet.model import Missing
from fleet.plan_wish import Reason
from fleet.prices import Price
from fleet.serving import Serving
from fleet.spec import Objectives, Scaling
from fleet.throughput import saturation_of

DEFAULT_INPUT_TOKENS, DEFAULT_OUTPUT_TOKENS = 1024, 256
"""Where the objectives name no lengths."""
ROUNDS = 3
"""Little's law against a latency that depends on the load: it settles within three rounds."""


@dataclass(frozen=True, slots=True)
class AtLoad:
    """What the wished load makes of a plan, whatever it costs."""

    latency: Latency
    concurrency: int
    tokens_per_second: Interval | None
    replicas: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected figures of one replica and of all."""

    at_load: AtLoad
    price: Price | None
    gpu_share: float
    """Of the nodes of a replica: several replicas can share a node."""

    @property
    def latency(self) -> Latency:
        """At the wished rate."""
        return self.at_load.latency

    @property
    def concurrency(self) -> int:
        """Requests in flight on one replica at the wished rate."""
        return self.at_load.concurrency

    @property
    def tokens_per_second(self) -> Interval | None:
        """Output tokens of one replica at saturation."""
        return self.at_load.tokens_per_second

    @property
    def replicas(self) -> int:
        """That the wished rate needs, at least ``scaling.min``."""
        return self.at_load.replicas

    @property
    def usd_per_hour(self) -> float | None:
        """Of all replicas; ``None`` while the price is not known."""
        return None if self.price is None else self.price.usd_per_hour * self.gpu_share * self.replicas


def lengths_of(objectives: Objectives | None) -> tuple[int, int]:
    """Input and output tokens of a request, as wished or as usual."""
    wished = objectives or Objectives()
    return wished.input_tokens or DEFAULT_INPUT_TOKENS, wished.output_tokens or DEFAULT_OUTPUT_TOKENS


def at_load(serving: Serving, objectives: Objectives | None, scaling: Scaling) -> AtLoad:
    """Work out the figures; nothing here refuses."""
    wished, speed = objectives or Objectives(), speed_of(serving)
    if isinstance(speed, Missing):
        return AtLoad(no_latency(speed), 1, None, max(1, scaling.min))
    rate = saturation_of(speed).total
    replicas = _replicas(wished, serving.output_tokens, rate, scaling)
    settled = _settled(speed, wished, replicas)
    if is_late(settled[1], wished) and replicas < scaling.max:
        replicas, settled = _enough(speed, wished, replicas, scaling.max)
    return AtLoad(settled[1], settled[0], rate, replicas)


def _enough(speed: Speed, wished: Objectives, least: int, most: int) -> tuple[int, tuple[int, Latency]]:
    """The fewest replicas with which the wished latency is met, where more of them help; else the least."""
    found = _settled(speed, wished, most)
    if is_late(found[1], wished):
        return least, _settled(speed, wished, least)
    low, high = least, most
    while high - low > 1:
        middle = (low + high) // 2
        settled = _settled(speed, wished, middle)
        if is_late(settled[1], wished):
            low = middle
        else:
            high, found = middle, settled
    return high, found


def is_late(latency: Latency, wished: Objectives) -> bool:
    """Whether even the favourable end misses an objective."""
    pairs = ((latency.tpot, wished.tpot_p95_seconds), (latency.ttft, wished.ttft_p95_seconds))
    return any(found is not None and limit is not None and found.low > limit for found, limit in pairs)


def unmet(
    found: Estimate,
    objectives: Objectives | None,
    scaling: Scaling,
    *,
    is_open: bool = False,
    generates: bool = True,
) -> Iterator[Reason]:
    """Objectives that even the favourable end of the estimate misses.

    Where the hardware is open (``is_open``), an objective that can't be judged rejects as well: what nobody knows is
    never taken for meeting it. Hardware that a person wrote down is a person's choice, and a note says what is unknown.
    """
    if objectives is None:
        return
    if is_open:
        yield from _unjudged(found, objectives, generates=generates)
    yield from latency_missed(found.latency, objectives, f"at {found.concurrency} in flight")
    if found.replicas > scaling.max:
        rate = found.tokens_per_second.mid if found.tokens_per_second else 0.0
        message = (
            f"{found.replicas} replicas are needed for {objectives.requests_per_second:g} requests a second; max is "
        )
        message += f"{scaling.max}"
        evidence = {"replicas": found.replicas, "max": scaling.max, "tokens_per_second_of_replica": rate}
        yield Reason("objective-rate", message, evidence)
    yield from cost_missed(found.usd_per_hour, found.price, objectives, f"{found.replicas} replicas")


def latency_missed(latency: Latency, objectives: Objectives, where: str) -> Iterator[Reason]:
    """Of time per token and time to the first one, what even the favourable end misses."""
    for name, wished, interval in (
        ("tpot", objectives.tpot_p95_seconds, latency.tpot),
        ("ttft", objectives.ttft_p95_seconds, latency.ttft),
    ):
        if wished is not None and interval is not None and interval.low > wished:
            message = f"{name} is at least {interval.low:.3g} s {where}; {wished:g} s are wished"
            yield Reason(f"objective-{name}", message, {"low_seconds": interval.low, "wished_seconds": wished})


def cost_missed(cost: float | None, price: Price | None, objectives: Objectives, replicas: str) -> Iterator[Reason]:
    """A cost that is known and above the objective."""
    most = objectives.max_cost_per_hour
    if cost is not None and most is not None and cost > most and price is not None:
        message = f"${cost:,.2f} an hour for {replicas} (priced {price.as_of}); ${most:,.2f} are allowed"
        yield Reason("objective-cost", message, {"usd_per_hour": cost, "max_cost_per_hour": most})


def _unjudged(found: Estimate, objectives: Objectives, *, generates: bool) -> Iterator[Reason]:
    """Objectives of which nothing is known here; models that generate no text have no latency per token to ask for."""
    latency = found.latency
    speed = "; ".join(latency.reasons) or "no figures"
    for name, wished, known in (
        ("tpot_p95_seconds", objectives.tpot_p95_seconds, latency.tpot),
        ("ttft_p95_seconds", objectives.ttft_p95_seconds, latency.ttft),
        ("requests_per_second", objectives.requests_per_second, found.tokens_per_second),
    ):
        if generates and wished is not None and known is None:
            yield Reason("objective-unknown", f"whether it meets {name} {wished:g} is not known: {speed}")
    if objectives.max_cost_per_hour is not None and found.price is None:
        message = (
            f"whether it costs at most ${objectives.max_cost_per_hour:,.2f} an hour is not known: it has no price; "
        )
        yield Reason("objective-unknown", f"{message}give one in prices.yaml")


def _replicas(wished: Objectives, output_tokens: int, rate: Interval | None, scaling: Scaling) -> int:
    least = max(1, scaling.min)
    if wished.requests_per_second is None or rate is None or rate.mid <= 0:
        return least
    return max(least, math.ceil(wished.requests_per_second * output_tokens / rate.mid))


def _settled(speed: Speed, wished: Objectives, replicas: int) -> tuple[int, Latency]:
    """Requests in flight on one replica (Little's law: rate x time in the system) and the latency at that load."""
    concurrency = 1
    latency = speed.latency(concurrency)
    if wished.requests_per_second is None:
        return concurrency, latency
    for _ in range(ROUNDS):
        if latency.tpot is None or latency.ttft is None:
            break
        seconds = latency.ttft.mid + speed.serving.output_tokens * latency.tpot.mid
        concurrency = max(1, math.ceil(wished.requests_per_second / replicas * seconds))
        latency = speed.latency(concurrency)
    return concurrency, latency
