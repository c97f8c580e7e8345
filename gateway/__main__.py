"""``python -m gateway --settings FILE``."""

import argparse
import sys
from pathlib import Path

from gateway.start import run


def main() -> int:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m gateway", description="The decision service beside Envoy.")
    parser.add_argument("--settings", type=Path, required=True, metavar="FILE", help="the settings, as JSON")
    parser.add_argument("--worker", type=int, metavar="N", help="be the worker N of a gateway that is running")
    arguments = parser.parse_args()
    return run(arguments.settings, arguments.worker)


if __name__ == "__main__":
    sys.exit(main())
