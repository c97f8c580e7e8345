"""How much CPU the command line costs before it answers, paired with an empty interpreter in the same run.

Prints the least, the median and the most of several runs for each command. CPU seconds (user + system) of the whole
process are taken, since wall time on a busy machine says little.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

COMMANDS = {
    "empty interpreter": (sys.executable, "-c", "pass"),
    "import pydantic": (sys.executable, "-c", "from pydantic import BaseModel"),
    "enginehouse --help": ("enginehouse", "--help"),
    "enginehouse advisories check": ("enginehouse", "advisories", "check", "vllm==0.33.0", "-o", "json"),
    "enginehouse advisories pins": ("enginehouse", "advisories", "pins", "--engine", "vllm", "-o", "json"),
}


def cpu_seconds(command: tuple[str, ...]) -> float:
    """User and system time of one run of a command."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(  # noqa: S603 (the commands of the table above)
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"PATH": path}
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main() -> None:
    """Run every command in turn, round by round, so that all see the same machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            taken[name].append(cpu_seconds(command))
    print(f"{'CPU seconds of':<32} {'min':>6} {'median':>7} {'max':>6}   ({runs} runs)")
    for name, seconds in taken.items():
        print(f"{name:<32} {min(seconds):>6.3f} {statistics.median(seconds):>7.3f} {max(seconds):>6.3f}")


if __name__ == "__main__":
    main()
