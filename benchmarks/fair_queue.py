"""Noisy neighbours in virtual time: what the others feel of one tenant that floods, and how service is shared out.

Run: ``python benchmarks/fair_queue.py [--seeds 10]``. The turns, queues, loads and router are the gateway's own, the
engines are modelled (fair_queue_engine.py: continuous batching of at most 64 requests each, with the latency of the
reference model). Ten tenants have a share each; all ten at their share load the fleet to 0.7 of what it can serve.

- Flood: nine tenants ask for their share (prompts of 1,000 tokens, answers of 400, both lognormal), the tenth for ten
  times its share, with prompts four times as long. Compared with the same requests of the nine without the tenth
  ("alone"): the 95th percentile of their time to first token, all nine together; the worst single one is shown beside
  it. What the queue costs is the time until 95 % of the same work is done, against a gateway that holds nothing back.
- Contention: all ten ask for 1.5 to 10 times their share at once, with prompts and answers of unlike lengths. Jain's
  index over the service that each got in one minute: prompt tokens computed and twice the tokens written. Half the
  fleet does for it.

In the same run: nobody waits in the gateway (the engines' own queues), first come first served, and round robin by
requests. The worst of all seeds is what counts. The second table, with long prompts and
short answers, shows a fleet that is bound by prompts instead of slots; it has no bar.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from fair_queue_engine import Asked, Fleet
from fair_queue_model import FleetRun, Run

from gateway.fair_queue import FairQueue, Waiting

FLEET = Fleet(engines=8, most_running=64, concurrent_requests=512)
CONTENDED = replace(FLEET, engines=4, concurrent_requests=256)
LOAD = 0.7
TENANTS = 10
FLOOD_SECONDS, WARM_UP_SECONDS = 60.0, 10.0
MINUTE = (15.0, 75.0)
CAPACITY_SPAN = (15.0, 35.0)
MOST_TTFT_RATIO, MOST_LOSS, LEAST_JAIN = 1.3, 0.03, 0.95
WORK_DONE = 0.95
FLOOD = "flood"


class FirstCome(FairQueue):
    """One queue for all."""

    def join(self, item: Waiting, most: int) -> Waiting | None:
        """All tenants count as one."""
        item.tenant = "all"
        return super().join(item, most)


class RequestTurns(FairQueue):
    """Each tenant in turn, whatever its requests cost."""

    def join(self, item: Waiting, most: int) -> Waiting | None:
        """Every request counts for one."""
        item.cost = 1.0
        return super().join(item, most)

    def serve_at_once(self, item: Waiting) -> None:
        """So does one that need not wait."""
        item.cost = 1.0
        super().serve_at_once(item)

    def correct(self, item: Waiting, cost: float) -> None:
        """What it came to changes nothing."""


NewQueue = Callable[[], FairQueue] | None
QUEUES: dict[str, NewQueue] = {
    "nobody waits here": None,
    "first come": FirstCome,
    "request turns": RequestTurns,
    "token counters": FairQueue,
}
OWN = "token counters"


@dataclass(frozen=True, slots=True)
class Shape:
    """The requests of one tenant; lengths are means of lognormal ones."""

    input_tokens: int = 1_000
    output_tokens: int = 400

    @property
    def service(self) -> float:
        """Of a mean request."""
        return self.input_tokens + 2.0 * self.output_tokens


def poisson(tenant: str, per_second: float, shape: Shape, seconds: float, seed: str) -> Iterator[Asked]:
    """Requests of one tenant."""
    chance = Random(seed)  # noqa: S311
    at = chance.expovariate(per_second)
    while at < seconds:
        yield Asked(at, tenant, _length(chance, shape.input_tokens), _length(chance, shape.output_tokens))
        at += chance.expovariate(per_second)


def _length(chance: Random, mean: int) -> int:
    return max(4, round(mean * chance.lognormvariate(-0.125, 0.5)))


def capacity(fleet: Fleet, shape: Shape) -> float:
    """The service that the fleet can give a second to requests of a shape, measured in the model."""
    too_many = poisson("all", 12.0 * fleet.engines, shape, CAPACITY_SPAN[1] + 5.0, "capacity")
    start, end = CAPACITY_SPAN
    return FleetRun(fleet, too_many, None, 0).run().served_between(start, end)["all"] / (end - start)


def p95(values: Iterable[float]) -> float:
    """The 95th percentile."""
    ordered = sorted(values)
    return ordered[int(0.95 * len(ordered))]


@dataclass(frozen=True, slots=True)
class Figures:
    """One run under a flood, for the nine others, or one without it."""

    ttft_seconds: float
    by_tenant: dict[str, float]
    done_seconds: float


def figures(run: Run) -> Figures:
    """What the nine felt, and how long the work took."""
    of: dict[str, list[float]] = defaultdict(list)
    for one in run.asked:
        if one.tenant != FLOOD and one.at > WARM_UP_SECONDS:
            of[one.tenant].append(one.ttft_seconds)
    total = sum(run.served[-1][1].values())
    done = next(moment for moment, counts in run.served if sum(counts.values()) >= WORK_DONE * total)
    everyone = [seconds for values in of.values() for seconds in values]
    return Figures(p95(everyone), {tenant: p95(values) for tenant, values in of.items()}, done)


def flooded(fleet: Fleet, shape: Shape, seed: int, share: float) -> dict[str, Figures]:
    """The runs of one seed; ``share`` = the service a second that is each tenant's."""
    calm = [
        one
        for number in range(TENANTS - 1)
        for one in poisson(f"t{number}", share / shape.service, shape, FLOOD_SECONDS, f"{seed}/{number}")
    ]
    long = replace(shape, input_tokens=4 * shape.input_tokens)
    flood = list(poisson(FLOOD, 10 * share / long.service, long, FLOOD_SECONDS, f"{seed}/flood"))
    found = {"alone": figures(FleetRun(fleet, map(_anew, calm), FairQueue, seed).run())}
    for name, queue in QUEUES.items():
        found[name] = figures(FleetRun(fleet, map(_anew, [*calm, *flood]), queue, seed).run())
    return found


def _anew(one: Asked) -> Asked:
    return Asked(one.at, one.tenant, one.input_tokens, one.output_tokens)


def contended(fleet: Fleet, seed: int, share: float) -> dict[str, float]:
    """Jain's index of each queue where all ask for more than their share."""
    chance = Random(f"{seed}/shapes")  # noqa: S311
    asked: list[Asked] = []
    for number in range(TENANTS):
        shape = Shape(chance.choice((250, 1_000, 4_000)), chance.choice((100, 400, 800)))
        times = 10.0 if number == 0 else chance.uniform(1.5, 4.0)
        rate = times * share / LOAD / shape.service
        asked += poisson(f"t{number}", rate, shape, MINUTE[1] + 5.0, f"{seed}/contended/{number}")
    return {
        name: jain(
            FleetRun(fleet, map(_anew, asked), queue, seed).run(until=MINUTE[1]).served_between(*MINUTE).values()
        )
        for name, queue in QUEUES.items()
    }


def jain(values: Iterable[float]) -> float:
    """1 = all got the same, 1/n = one got everything."""
    got = list(values)
    got += [0.0] * (TENANTS - len(got))
    return sum(got) ** 2 / (len(got) * sum(value * value for value in got))


def show_flood(title: str, runs: Sequence[dict[str, Figures]]) -> tuple[float, float]:
    """Print the worst of all seeds; the own queue's ratio and loss."""
    print(f"{title}\n  {'queue':<20} {'p95 TTFT':>9} {'over alone':>11} {'worst tenant':>13} {'time taken':>11}")
    alone = max(run["alone"].ttft_seconds for run in runs)
    print(f"  {'alone':<20} {alone:>7.2f} s")
    own = (0.0, 0.0)
    for name in QUEUES:
        seconds = max(run[name].ttft_seconds for run in runs)
        ratio = max(run[name].ttft_seconds / run["alone"].ttft_seconds for run in runs)
        worst = max(run[name].by_tenant[t] / run["alone"].by_tenant[t] for run in runs for t in run["alone"].by_tenant)
        loss = max(run[name].done_seconds / run["nobody waits here"].done_seconds for run in runs) - 1
        print(f"  {name:<20} {seconds:>7.2f} s {ratio:>10.2f}x {worst:>12.2f}x {loss:>+10.1%}", flush=True)
        own = (ratio, loss) if name == OWN else own
    return own


def main() -> int:
    """Run everything and print; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    chat, short = Shape(), Shape(2_000, 100)
    can = {shape: capacity(FLEET, shape) for shape in (chat, short)}
    share = {shape: LOAD * can[shape] / TENANTS for shape in can}
    ratio, loss = show_flood("flood, worst of all seeds", [flooded(FLEET, chat, s, share[chat]) for s in seeds])
    show_flood("flood, prompt-bound (no bar)", [flooded(FLEET, short, s, share[short]) for s in tuple(seeds)[:2]])
    half = share[chat] * CONTENDED.engines / FLEET.engines
    shared = [contended(CONTENDED, seed, half) for seed in seeds]
    least = {name: min(one[name] for one in shared) for name in QUEUES}
    print("contention, Jain's index over a minute, worst of all seeds")
    for name, index in least.items():
        print(f"  {name:<20} {index:.3f}")
    bars = {
        f"TTFT p95 of the others {ratio:.2f}x of alone <= {MOST_TTFT_RATIO}x": ratio <= MOST_TTFT_RATIO,
        f"the same work takes {loss:+.1%} <= {MOST_LOSS:.0%} longer": loss <= MOST_LOSS,
        f"Jain's index {least[OWN]:.3f} >= {LEAST_JAIN}": least[OWN] >= LEAST_JAIN,
    }
    for claim, is_met in bars.items():
        print(f"  {'met   ' if is_met else 'MISSED'} {claim}")
    return 0 if all(bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
