"""``python -m gateway --settings FILE``."""

import argparse
import sys
from pathlib import Path

from gateway.main import run


def main() -> int:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m gateway", description="The decision service beside Envoy.")
    parser.add_argument("--settings", type=Path, required=True, metavar="FILE", help="the settings, as JSON")
    return run(parser.parse_args().settings)


if __name__ == "__main__":
    sys.exit(main())
