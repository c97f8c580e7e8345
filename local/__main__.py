"""`python -m local STATE`: the supervisor without a terminal, as `enginehouse local up --detach` starts it."""

import contextlib
import os
import sys
from pathlib import Path

from local.errors import LocalFleetError
from local.layout import Layout
from local.start import Wishes, opened
from local.stop_request import Interrupted, StopRequest


def main(arguments: list[str]) -> int:
    """Run a fleet until a signal comes; the wishes are the second argument, as JSON."""
    layout = Layout(Path(arguments[0]))
    wishes = Wishes.model_validate_json(arguments[1]) if len(arguments) > 1 else Wishes()
    environment = dict(os.environ)
    with StopRequest() as stop, stop.handling_signals():
        try:
            with opened(
                layout, wishes, python=sys.executable, environment=environment, stop=stop, tell=_tell
            ) as running:
                running.supervisor.watch()
        except LocalFleetError as error:
            _tell(str(error))
            return 1
        except Interrupted as error:
            return 128 + error.signum
    return 0


def _tell(message: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may have gone; the fleet must still be ended
        sys.stderr.write(message + "\n")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
