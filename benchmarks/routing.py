"""What routing policies make of a real trace in the reference model, with the bars that the product keeps.

Run: ``python benchmarks/routing.py [--trace FILE] [--quick]``. The trace is Mooncake's conversation trace (12,031
requests). Round robin runs beside the product's policy and must give the figures of the reference model, which shows
that the model is the same. The disturbed runs are compared with the undisturbed one of the same run.
"""

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from simulator.replay import PolicyName, ReplayResult, ReplaySettings, Sharing, replay
from simulator.trace_file import Trace, TraceError

TRACE = Path(__file__).resolve().parents[2] / "shared" / "traces" / "mooncake_conversation.jsonl.gz"
CELL = ReplaySettings(PolicyName.ESTIMATED_TTFT, replicas=8, cache_blocks=3_000)
TTFT_SECONDS = {
    (2, 1_000): 4.19, (4, 1_000): 2.16, (8, 1_000): 1.25, (16, 1_000): 0.97,
    (2, 3_000): 3.61, (4, 3_000): 1.73, (8, 3_000): 1.04, (16, 3_000): 0.86,
    (2, 10_000): 2.82, (4, 10_000): 1.41, (8, 10_000): 0.95, (16, 10_000): 0.85,
}  # fmt: skip
"""(replicas, blocks) -> mean seconds of the reference's cost-based policy at load 0.7, which knows true caches."""
BUSY_LOAD, BUSY_TTFT_SECONDS = 0.9, 1.19
NEAR = 1.10
CPU_SECONDS = 30.0
DISTURBED = {
    "one engine restarts": (replace(CELL, restart_at_seconds=1_000.0), 1.25),
    "metrics 5 s late": (replace(CELL, metrics_delay_seconds=5.0), 1.25),
    "two gateways, KV events": (replace(CELL, gateways=2, sharing=Sharing.KV_EVENTS), 1.3),
    "two gateways, shared state": (replace(CELL, gateways=2, sharing=Sharing.STATE), 1.3),
    "two gateways, nothing shared": (replace(CELL, gateways=2), 1.5),
    "two gateways, metrics 5 s late": (replace(CELL, gateways=2, metrics_delay_seconds=5.0), 1.5),
}
"""What goes wrong -> the settings, and how many times the undisturbed mean TTFT it may take."""
SHARED_LOADS = (0.001, 0.1, 0.7)
SHARED_MOST = 3.0
"""The busiest engine may get so many times the mean where all prompts share their first block, and only that."""


@dataclass(slots=True)
class Bars:
    """Bars that were missed."""

    missed: int = 0

    def check(self, is_met: bool, claim: str) -> None:
        """Print one bar."""
        self.missed += not is_met
        print(f"  {'met   ' if is_met else 'MISSED'} {claim}")


def main() -> int:
    """Run everything and print; 1 when a bar is missed, 3 without the trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, default=TRACE)
    parser.add_argument("--quick", action="store_true", help="the main cell alone")
    options = parser.parse_args()
    trace, bars = Trace(options.trace), Bars()
    try:
        undisturbed = main_cell(trace, bars)
    except TraceError as error:
        print(f"{error}; give Mooncake's conversation trace by --trace", file=sys.stderr)
        return 3
    if not options.quick:
        policies(trace)
        cells(trace, bars, undisturbed)
        disturbed(trace, bars, undisturbed)
        shared_first_block(bars)
    print("bars met" if not bars.missed else f"bars missed: {bars.missed}")
    return 1 if bars.missed else 0


def main_cell(trace: Trace, bars: Bars) -> ReplayResult:
    """The bar: the product's policy, and round robin in the same run."""
    print("8 replicas x 3,000 blocks, load 0.7")
    turns = shown("round_robin", trace, replace(CELL, policy=PolicyName.ROUND_ROBIN))
    started = time.process_time()
    own = shown("estimated_ttft", trace, CELL)
    cpu = time.process_time() - started
    busiest = own.busiest_over_mean_tokens or 0.0
    bars.check(round(turns.hit_ratio, 4) == 0.0925, f"round robin's hit ratio {turns.hit_ratio:.4f} is 0.0925")
    bars.check(abs(turns.mean_ttft_seconds - 2.90) < 0.005, f"its mean TTFT {turns.mean_ttft_seconds:.3f} s is 2.90 s")
    bars.check(own.hit_ratio >= 0.265, f"hit ratio {own.hit_ratio:.4f} >= 0.265")
    bars.check(own.mean_ttft_seconds <= 1.10, f"mean TTFT {own.mean_ttft_seconds:.3f} s <= 1.10 s")
    bars.check(busiest <= 1.10, f"busiest over mean tokens {busiest:.3f} <= 1.10")
    bars.check(cpu < CPU_SECONDS, f"CPU of the full trace {cpu:.1f} s < {CPU_SECONDS:.0f} s")
    return own


def policies(trace: Trace) -> None:
    """The other policies, for comparison."""
    print("other policies, same cell")
    others = set(PolicyName) - {PolicyName.ROUND_ROBIN, PolicyName.ESTIMATED_TTFT}
    for policy in sorted(others):
        shown(policy, trace, replace(CELL, policy=policy))


def cells(trace: Trace, bars: Bars, undisturbed: ReplayResult) -> None:
    """Other sizes and a higher load."""
    print("mean TTFT against the reference's cost-based policy, at most 10 % more")
    for (replicas, blocks), seconds in TTFT_SECONDS.items():
        settings = replace(CELL, replicas=replicas, cache_blocks=blocks)
        found = undisturbed if settings == CELL else replay(trace, settings)
        claim = f"{replicas:>2} x {blocks:>6}: {found.mean_ttft_seconds:.3f} s, reference {seconds:.2f} s"
        bars.check(found.mean_ttft_seconds <= NEAR * seconds, f"{claim} (hit {found.hit_ratio:.3f})")
    busy = replay(trace, replace(CELL, load=BUSY_LOAD))
    claim = f"load {BUSY_LOAD}: {busy.mean_ttft_seconds:.3f} s, reference {BUSY_TTFT_SECONDS} s"
    bars.check(busy.mean_ttft_seconds <= NEAR * BUSY_TTFT_SECONDS, claim)


def disturbed(trace: Trace, bars: Bars, undisturbed: ReplayResult) -> None:
    """What goes wrong."""
    print("mean TTFT over the undisturbed one")
    for name, (settings, most) in DISTURBED.items():
        found = replay(trace, settings)
        ratio = found.mean_ttft_seconds / undisturbed.mean_ttft_seconds
        seconds = f"{found.mean_ttft_seconds:.3f} s, hit {found.hit_ratio:.3f}"
        bars.check(ratio <= most, f"{name}: {ratio:.2f} <= {most} ({seconds})")


def shared_first_block(bars: Bars) -> None:
    """Prompts that share their first block and nothing else, from a fleet at rest to a busy one."""
    print("800 prompts that share only their first block: busiest engine over mean requests")
    with tempfile.TemporaryDirectory() as folder:
        trace = Trace(Path(folder) / "shared.jsonl")
        trace.path.write_text("".join(_shared_line(number) for number in range(800)))
        for load in SHARED_LOADS:
            counts = replay(trace, replace(CELL, load=load)).per_replica_requests
            ratio = max(counts) * len(counts) / sum(counts)
            bars.check(ratio <= SHARED_MOST and min(counts) > 0, f"load {load}: {ratio:.2f} <= {SHARED_MOST}")


def _shared_line(number: int) -> str:
    blocks = [0, *range(4 * number + 1, 4 * number + 5)]
    request = {"timestamp": 1000 * number, "input_length": 2_560, "output_length": 100, "hash_ids": blocks}
    return json.dumps(request) + "\n"


def shown(name: str, trace: Trace, settings: ReplaySettings) -> ReplayResult:
    """One run and its row."""
    result = replay(trace, settings)
    print(f"  {name:<16} hit {result.hit_ratio:.4f}  mean TTFT {result.mean_ttft_seconds:.3f} s", flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
