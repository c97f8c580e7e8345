"""How long the whole program of an environment takes without an engine, and how many resources it registers.

Run it with ``.venv/bin/python benchmarks/infra_program.py``. The first run of a process loads the SDK's modules; the
time of the others is the program's own and the recorder's checks. What is asked of a prod program: under 4 s.
"""

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from infra.program import build  # noqa: E402
from infra.program_inputs import NOTHING, Inputs  # noqa: E402
from sources.environment import Environment  # noqa: E402
from tests.infra.recording import record  # noqa: E402
from tests.infra.stacks import VARIANTS  # noqa: E402


def main() -> None:
    """Print one line for each stack."""
    inputs = Inputs(Environment(), NOTHING, None)
    record(lambda: build(VARIANTS["prod"], inputs))
    print(f"{'stack':<16}{'resources':>10}{'seconds':>9}{'of the CPU':>12}")
    for name, config in VARIANTS.items():
        wall, cpu = time.perf_counter(), time.process_time()
        recording = record(lambda config=config: build(config, inputs))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(f"{name:<16}{len(recording.resources):>10}{wall:>9.2f}{cpu:>12.2f}")


if __name__ == "__main__":
    main()
