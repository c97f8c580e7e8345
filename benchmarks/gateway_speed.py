"""What the gateway costs over plain Envoy and beside other routers, with the bars that the product keeps.

Run: ``python benchmarks/gateway_speed.py [--quick] [-o FILE]``. The load and the engines have one core, each contender
has another one with all its processes, one at a time; the rounds go through all of them in turn, and each figure is the
median of the rounds, each ratio of the ratios in one round. Needs wrk and taskset (Debian: apt-get install wrk).
Peers: ``python benchmarks/gateway_peers.py`` installs them; without them their rows say so.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import gateway_trials as trials
from gateway_peers import PEERS, running, why_not
from gateway_processes import GUARDED, UNGUARDED, Contender, Cores, constant_decision, engines, our_gateway, plain_envoy
from gateway_trials import Way

GENERATOR_OVER_PLAIN = 3.0
SHORT_OVER_PLAIN, LONG_OVER_PLAIN = 0.42, 0.28
ADDED_P50_MS, ADDED_P99_MS = 1.5, 5.0
ASKED_CHUNK_US, INJECTED_CHUNK_US, GUARD_CHUNK_US = 10.0, 40.0, 20.0
MEMORY_MIB = 120.0
PLAIN, OFF, ON = "plain Envoy", "gateway, guard off", "gateway, guard on"
CONSTANT = "the gateway's Envoy, with a decision that costs nothing"
"""What no decision can get below."""


@dataclass(slots=True)
class Report:
    """The rows, in the order in which they came."""

    rows: list[dict[str, object]] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str, *, bar: float | None = None, is_least: bool = False) -> None:
        """One row, printed at once; with a bar it must not be passed (``is_least``: must be reached)."""
        is_met = None if bar is None else (value >= bar if is_least else value <= bar)
        self.rows.append({"row": name, "value": round(value, 3), "unit": unit, "bar": bar, "met": is_met})
        claim = "" if bar is None else f"   {'>=' if is_least else '<='} {bar:g} {'met' if is_met else 'MISSED'}"
        print(f"{name:<58} {value:>10.2f} {unit}{claim}", flush=True)

    def leave_out(self, name: str, reason: str) -> None:
        """A row that can't be had."""
        self.rows.append({"row": name, "value": None, "unit": "", "bar": None, "met": None, "reason": reason})
        print(f"{name:<58} {'-':>10} {reason}", flush=True)

    @property
    def missed(self) -> int:
        """How many bars."""
        return sum(row["met"] is False for row in self.rows)


@dataclass(frozen=True, slots=True)
class Run:
    """What all trials need."""

    report: Report
    core: str
    folder: Path
    seconds: int
    rounds: int


def main() -> int:
    """Run everything; 1 when a bar is missed, 2 when the run says nothing, 3 without its tools."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: whether it works, not how fast it is")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("-o", "--output", type=Path, help="write the rows as JSON")
    options = parser.parse_args()
    if missing := [tool for tool in ("wrk", "taskset") if shutil.which(tool) is None]:
        print(f"{' and '.join(missing)} missing; on Debian: apt-get install wrk util-linux", file=sys.stderr)
        return 3
    cores = Cores()
    seconds, rounds = (1, 1) if options.quick else (options.seconds, options.rounds)
    with tempfile.TemporaryDirectory() as folder, _contenders(cores, Path(folder)) as (direct, ways, constant, ports):
        run = Run(Report(), cores.load, Path(folder), seconds, rounds)
        print(
            f"load {os.getloadavg()[0]:.1f}, {rounds} rounds of {seconds} s, load core {cores.load}, {cores.contender}"
        )
        is_valid = _requests(run, direct, [*ways, constant])
        _latencies(run, ways)
        _streams(run, ways)
        run.report.add(
            "memory of the gateway, all its processes", ways[1].contender.memory_mib(), "MiB", bar=MEMORY_MIB
        )
        if not options.without_peers:
            _peers(run, cores, ports)
    if options.output is not None:
        options.output.write_text(json.dumps({"is_valid": is_valid, "rows": run.report.rows}, indent=1))
    if not is_valid:
        print(f"INVALID: the generator reached less than {GENERATOR_OVER_PLAIN:g} times plain Envoy", file=sys.stderr)
        return 2
    return 1 if run.report.missed else 0


@contextmanager
def _contenders(cores: Cores, folder: Path) -> Iterator[tuple[Way, list[Way], Way, Sequence[int]]]:
    with ExitStack() as stack:
        ports = stack.enter_context(engines(cores.load, folder))
        plain = stack.enter_context(plain_envoy(cores.contender, folder, ports))
        ours = stack.enter_context(our_gateway(cores.contender, folder, ports))
        ways = [Way(PLAIN, plain, GUARDED), Way(OFF, ours, UNGUARDED), Way(ON, ours, GUARDED)]
        constant = stack.enter_context(constant_decision(cores.contender, folder / "constant", ports))
        direct = Way("engine directly", Contender(ports[0], []), GUARDED)
        yield direct, ways, Way(CONSTANT, constant, UNGUARDED), ports


def _requests(run: Run, direct: Way, ways: Sequence[Way]) -> bool:
    """Requests per second; whether the generator was fast enough."""
    rates: dict[tuple[str, bool], list[trials.Rate]] = {}
    for _ in range(run.rounds):
        for way in (direct, *ways):
            rate = trials.requests(way, run.core, run.seconds, run.folder, is_long=False)
            rates.setdefault((way.name, False), []).append(rate)
        for way in ways:
            rate = trials.requests(way, run.core, run.seconds, run.folder, is_long=True)
            rates.setdefault((way.name, True), []).append(rate)
    ratio = _over_plain(rates, direct.name, is_long=False)
    run.report.add("requests, 600 B: generator and engine alone", _rate(rates[direct.name, False]), "1/s")
    run.report.add("  over plain Envoy", ratio, "x", bar=GENERATOR_OVER_PLAIN, is_least=True)
    bars = {False: SHORT_OVER_PLAIN, True: LONG_OVER_PLAIN}
    for is_long, bar in bars.items():
        for way in ways:
            size, found = "64 KB" if is_long else "600 B", rates[way.name, is_long]
            run.report.add(f"requests, {size}: {way.name}", _rate(found), "1/s")
            spent = statistics.median(rate.cpu_microseconds for rate in found)
            run.report.add("  CPU of one", spent, "us")
            if way is not ways[0]:
                wanted = bar if way.name == OFF else None
                over = _over_plain(rates, way.name, is_long=is_long)
                run.report.add("  over plain Envoy", over, "x", bar=wanted, is_least=True)
    return ratio >= GENERATOR_OVER_PLAIN


def _rate(found: Sequence[trials.Rate]) -> float:
    return statistics.median(rate.per_second for rate in found)


def _over_plain(rates: dict[tuple[str, bool], list[trials.Rate]], name: str, *, is_long: bool) -> float:
    pairs = zip(rates[name, is_long], rates[PLAIN, is_long], strict=True)
    return statistics.median(one.per_second / plain.per_second for one, plain in pairs)


def _latencies(run: Run, ways: Sequence[Way]) -> None:
    found = trials.latencies(ways, run.core, run.seconds, 2 * run.rounds)
    for share, name, bar in ((0.5, "p50", ADDED_P50_MS), (0.99, "p99", ADDED_P99_MS)):
        plain = _share(found[PLAIN], share)
        run.report.add(f"latency at {trials.RATE:g}/s, {name}: {PLAIN}", plain, "ms")
        for way in ways[1:]:
            run.report.add(f"  added by {way.name}", _share(found[way.name], share) - plain, "ms", bar=bar)


def _share(seconds: Sequence[float], share: float) -> float:
    return seconds[min(len(seconds) - 1, int(share * len(seconds)))] * 1000


def _streams(run: Run, ways: Sequence[Way]) -> None:
    """What one chunk costs over plain Envoy, and the guard over none."""
    spent: dict[tuple[str, bool], list[trials.Chunks]] = {}
    for _ in range(2 * run.rounds):
        for way in ways:
            for is_asked in (True, False):
                chunks = trials.streams(way, run.core, run.seconds, is_usage_asked=is_asked)
                spent.setdefault((way.name, is_asked), []).append(chunks)
    for is_asked, what, bar in (
        (True, "usage asked for", ASKED_CHUNK_US),
        (False, "usage injected", INJECTED_CHUNK_US),
    ):
        plain = spent[PLAIN, is_asked]
        run.report.add(f"stream, {what}: one chunk in {PLAIN}", _cost(plain), "us")
        run.report.add(f"  added by {OFF}", _added(spent[OFF, is_asked], plain), "us", bar=bar)
        run.report.add(
            "  added by the guard", _added(spent[ON, is_asked], spent[OFF, is_asked]), "us", bar=GUARD_CHUNK_US
        )
        reached = min(statistics.median(c.per_second for c in spent[way.name, is_asked]) for way in ways)
        run.report.add("  least chunks that came", reached, "1/s")


def _cost(found: Sequence[trials.Chunks]) -> float:
    return statistics.median(chunks.cpu_microseconds for chunks in found)


def _added(found: Sequence[trials.Chunks], base: Sequence[trials.Chunks]) -> float:
    pairs = zip(found, base, strict=True)
    return statistics.median(one.cpu_microseconds - other.cpu_microseconds for one, other in pairs)


def _peers(run: Run, cores: Cores, ports: Sequence[int]) -> None:
    for name in PEERS:
        if (reason := why_not(name)) is not None:
            run.report.leave_out(f"peer {name}", reason)
            continue
        try:
            with running(name, cores.contender, run.folder, ports) as contender:
                _peer(run, Way(name, contender, GUARDED))
        except SystemExit as failure:
            run.report.leave_out(f"peer {name}", str(failure).splitlines()[0])


def _peer(run: Run, way: Way) -> None:
    connections = PEERS[way.name].connections
    found = [
        trials.requests(way, run.core, run.seconds, run.folder, is_long=False, connections=connections)
        for _ in range(run.rounds)
    ]
    run.report.add(f"requests, 600 B: {way.name}", _rate(found), "1/s")
    run.report.add("  CPU of one", statistics.median(rate.cpu_microseconds for rate in found), "us")
    side_by_side = connections or trials.STREAMS
    chunks = trials.streams(way, run.core, run.seconds, is_usage_asked=True, connections=side_by_side)
    run.report.add("  one chunk of a stream", chunks.cpu_microseconds, "us")
    run.report.add("  memory", way.contender.memory_mib(), "MiB")


if __name__ == "__main__":
    sys.exit(main())
