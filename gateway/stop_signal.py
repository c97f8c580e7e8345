"""How a process of the gateway is told to stop: by SIGTERM, or by ^C."""

import asyncio
import signal
from collections.abc import Callable


def on_stop_signal(told: Callable[[], None]) -> None:
    """Have this called on the running event loop when the process is told to stop."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told)
