"""What a chunk of a stream costs on its whole way through the gateway, without and with the output filter, in one run.

Run: ``python benchmarks/output_filter_path.py [--quick]``. The load and the engine have one core, Envoy and the
gateway's worker together the other one; their CPU time is read from the kernel, each by itself. The engine writes an
invented text with planted values, a token in each chunk. Both ways pass the guard. Needs taskset (Debian: util-linux).
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import gateway_trials as trials
from gateway_processes import FILTERED, GUARDED, Cores, engines, our_gateway
from gateway_trials import Way

WHOLE_BAR_US, FILTER_BAR_US = 90.0, 10.0


class Cost(NamedTuple):
    """Microseconds of CPU for one chunk."""

    worker: float
    envoy: float

    @property
    def whole(self) -> float:
        """Of the whole path."""
        return self.worker + self.envoy


def main() -> int:
    """Measure and print; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round: whether it works, not how fast it is")
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    seconds, rounds = (1, 1) if options.quick else (options.seconds, options.rounds)
    cores = Cores()
    with (
        tempfile.TemporaryDirectory() as folder,
        engines(cores.load, Path(folder), "output_filter_engine.py") as ports,
        our_gateway(cores.contender, Path(folder), ports, output_filter="pii") as gateway,
    ):
        print(
            f"load {os.getloadavg()[0]:.1f}, {rounds} rounds of {seconds} s, load core {cores.load}, {cores.contender}"
        )
        plain, filtered = [], []
        for _ in range(rounds):
            plain.append(_cost(Way("guard", gateway, GUARDED), cores.load, seconds))
            filtered.append(_cost(Way("guard and filter", gateway, FILTERED), cores.load, seconds))
    return _report(plain, filtered)


def _cost(way: Way, core: str, seconds: float) -> Cost:
    parts = way.contender.parts
    before = [part.cpu_seconds() for part in parts]
    chunks = trials.streams(way, core, seconds, is_usage_asked=True)
    worker, envoy = (part.cpu_seconds() - spent for part, spent in zip(parts, before, strict=True))
    share = chunks.cpu_microseconds / (worker + envoy)
    return Cost(worker * share, envoy * share)


def _report(plain: list[Cost], filtered: list[Cost]) -> int:
    rows = {
        "guard: worker": [cost.worker for cost in plain],
        "guard: whole path": [cost.whole for cost in plain],
        "guard and filter: worker": [cost.worker for cost in filtered],
        "guard and filter: whole path": [cost.whole for cost in filtered],
        "added in the worker by the filter": [b.worker - a.worker for a, b in zip(plain, filtered, strict=True)],
    }
    bars = {"guard and filter: whole path": WHOLE_BAR_US, "added in the worker by the filter": FILTER_BAR_US}
    missed = 0
    print(f"{'us of CPU per chunk':<40} {'least':>7} {'median':>7}")
    for name, figures in rows.items():
        bar = bars.get(name)
        median = statistics.median(figures)
        missed += bar is not None and median > bar
        claim = "" if bar is None else f"   <= {bar:g} {'met' if median <= bar else 'MISSED'}"
        print(f"{name:<40} {min(figures):>7.1f} {median:>7.1f}{claim}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
