"""What a second worker costs: CPU of one request with two workers over that with one, in the same run.

Run: ``python benchmarks/gateway_workers.py [--quick]``. Both gateways are up all the time, first on one core together,
Envoy among it, where two workers push one another out of its caches; then on two cores, one of which has the load too.
The load goes to one gateway at a time, in turn, and the first of a round goes second in the next. The figure is the
median of the ratios of the rounds. Needs wrk and taskset (Debian: apt-get install wrk util-linux).
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import gateway_trials as trials
from gateway_processes import GUARDED, UNGUARDED, Cores, engines, our_gateway
from gateway_speed import Report
from gateway_trials import Rate, Way

TWO_OVER_ONE = 1.15
WORKERS = (1, 2)
ROUTES = {UNGUARDED: "guard off", GUARDED: "guard on"}


def main() -> int:
    """Run and print; 1 when the bar is missed, 3 when nothing can be measured here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: whether it works")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    if missing := [tool for tool in ("wrk", "taskset") if shutil.which(tool) is None]:
        print(f"{' and '.join(missing)} missing; on Debian: apt-get install wrk util-linux", file=sys.stderr)
        return 3
    seconds, rounds = (1, 1) if options.quick else (options.seconds, options.rounds)
    cores, report = Cores(), Report()
    print(f"load {os.getloadavg()[0]:.1f}, {rounds} rounds of {seconds} s")
    for where, core in (("one core", cores.contender), ("two cores", cores.both)):
        with tempfile.TemporaryDirectory() as name:
            on_some(report, where, core, cores.load, seconds, rounds, Path(name))
    return 1 if report.missed else 0


def on_some(report: Report, where: str, core: str, load: str, seconds: float, rounds: int, folder: Path) -> None:
    """The rows of gateways on some cores."""
    with ExitStack() as stack:
        ports = stack.enter_context(engines(load, folder))
        contenders = {
            count: stack.enter_context(our_gateway(core, folder / str(count), ports, workers=count))
            for count in WORKERS
        }
        for model, route in ROUTES.items():
            ways = {count: Way(f"{count} workers, {route}, {where}", one, model) for count, one in contenders.items()}
            compare(report, ways, load, seconds, rounds, folder)


def compare(report: Report, ways: dict[int, Way], core: str, seconds: float, rounds: int, folder: Path) -> None:
    """The rows of one route."""
    found: dict[int, list[Rate]] = {count: [] for count in ways}
    for way in ways.values():
        trials.requests(way, core, 1, folder, is_long=False)  # connections and caches are there afterwards
    for number in range(rounds):
        for count in WORKERS if number % 2 == 0 else reversed(WORKERS):
            found[count].append(trials.requests(ways[count], core, seconds, folder, is_long=False))
    for count, way in ways.items():
        report.add(f"requests, 600 B: {way.name}", statistics.median(one.per_second for one in found[count]), "1/s")
        report.add("  CPU of one", statistics.median(one.cpu_microseconds for one in found[count]), "us")
    pairs = zip(found[2], found[1], strict=True)
    ratio = statistics.median(two.cpu_microseconds / one.cpu_microseconds for two, one in pairs)
    report.add("  CPU of one with two workers over one with one", ratio, "x", bar=TWO_OVER_ONE)


if __name__ == "__main__":
    sys.exit(main())
