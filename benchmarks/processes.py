"""Runs a command as a new process and says what it took.

The command is started by a small launcher (this file as a program): a process inherits the peak memory of the one that
forked it, so a large parent would hide what the command itself takes.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

SHOWN = 300


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    wall: float
    cpu: float
    """User and system seconds."""
    peak_mib: float
    code: int
    is_json: bool
    """Whether its output is one JSON document."""
    complaint: str
    """What it wrote to stderr, if it failed."""


def run(command: Sequence[str]) -> Run:
    """Run it; its own peak memory and CPU are taken, not those of other children."""
    launcher = (sys.executable, "-I", "-S", __file__, *command)
    done = subprocess.run(launcher, check=True, capture_output=True, text=True)  # noqa: S603
    return Run(**json.loads(done.stdout))


def launched(command: Sequence[str]) -> Run:
    """Run it as a child of this process."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=os.environ | {"PATH": path})  # noqa: S603
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        said = " ".join(errors.read().decode("utf-8", "replace").split())
        return Run(
            wall=wall,
            cpu=used.ru_utime + used.ru_stime,
            peak_mib=used.ru_maxrss / 1024,
            code=process.returncode,
            is_json=_is_json(output.read()),
            complaint="" if process.returncode == 0 else said[:SHOWN],
        )


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(asdict(launched(sys.argv[1:]))))
