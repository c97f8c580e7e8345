"""Starts a gateway: alone, with workers, or as one of them; each loads only what it needs."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

import uvloop

from gateway import log_lines
from gateway.error_places import kind_and_place
from gateway.errors import GatewayError
from gateway.settings import GatewaySettings, read_settings


def run(settings_path: Path, worker: int | None = None) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    log_lines.configure()
    try:
        settings = read_settings(settings_path)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.get_loop().set_exception_handler(log_unhandled)
            if worker is None and settings.workers > 1:
                runner.run(_supervise(settings, settings_path))
            else:
                runner.run(_serve(settings, worker))
    except GatewayError as error:
        sys.stderr.write(f"gateway: {error}\n")
        return 1
    return 0


def log_unhandled(_: asyncio.AbstractEventLoop, context: Mapping[str, object]) -> None:
    """A loop's exception handler: nothing of what an exception says or was called with, which may be of a request."""
    import structlog

    error = context.get("exception")
    structlog.get_logger("gateway.start").error(
        "loop.unhandled", **kind_and_place(error if isinstance(error, BaseException) else None)
    )


async def _supervise(settings: GatewaySettings, settings_path: Path) -> None:
    from gateway.supervisor import Supervisor

    await Supervisor(settings, settings_path).serve()


async def _serve(settings: GatewaySettings, number: int | None) -> None:
    from gateway.main import Gateway
    from gateway.worker import Worker

    if number is None:
        await Gateway(settings).serve()
    else:
        worker = Worker(number, settings)
        await Gateway(worker.settings, worker).serve()
