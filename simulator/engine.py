"""A simulated inference engine: `python -m simulator.engine --dialect vllm --engine-version 0.32.0 -- vllm serve ...`.

It takes the real engine's command line, speaks its OpenAI API and its metrics, and makes up the text.
"""

import asyncio
import sys
from collections.abc import Sequence

import uvloop

from simulator.command_line import read_command_line
from simulator.engine_flags import CommandLineError
from simulator.server import PortInUseError, serve


def main(argv: Sequence[str] | None = None) -> int:
    """Run one engine until it is told to stop; return the exit code."""
    try:
        settings = read_command_line(sys.argv[1:] if argv is None else argv)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings))
    except CommandLineError as error:
        sys.stderr.write(f"simulated engine: {error}\n")
        return 2
    except PortInUseError as error:
        sys.stderr.write(f"simulated engine: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
