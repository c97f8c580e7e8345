"""Serves an engine over HTTP: start, readiness, and an orderly end on SIGTERM or SIGINT."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from simulator.app import EngineApp
from simulator.settings import EngineSettings


class PortInUseError(Exception):
    """Something else listens on the address."""


class EngineServer(uvicorn.Server):
    """A uvicorn server whose signals are handled by `serve`, so that an orderly end is exit code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


async def serve(settings: EngineSettings) -> None:
    """Serve one engine until a signal comes; running answers end first."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with open_socket(settings.host, settings.port) as listener:
        name = f"simulated {settings.dialect} {settings.version}: {settings.api.served_names[0]}"
        _say(f"{name} on {settings.host}:{settings.port}\n")
        if not await _is_stopped_during_startup(stop, settings.pace.startup_seconds * settings.pace.time_scale):
            start_listening(listener)
            await serve_on(listener, EngineApp(settings), stop)


def _say(text: str) -> None:
    """Write a line past the stream's buffer: a full disk under the log costs the line, not the engine."""
    with contextlib.suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), text.encode("utf-8", "backslashreplace"))


async def serve_on(listener: socket.socket, app: EngineApp, stop: asyncio.Event) -> None:
    """Serve one engine on a listening socket until `stop` is set and its answers are complete."""
    server = EngineServer(_config(app))
    async with app.runtime.running():
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        stopping.cancel()
        await serving


def open_socket(host: str, port: int) -> socket.socket:
    """Bind the address without listening: clients are refused until the engine is ready."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise _port_problem(host, port, error) from error
    return listener


def start_listening(listener: socket.socket) -> None:
    """Begin to accept connections; this is where a second engine on the port finds out."""
    try:
        listener.listen(2_048)
    except OSError as error:
        host, port = listener.getsockname()[:2]
        raise _port_problem(host, port, error) from error


def _port_problem(host: str, port: int, error: OSError) -> PortInUseError:
    return PortInUseError(f"cannot listen on {host}:{port}: {error.strerror}; end what uses it or give another --port")


async def _is_stopped_during_startup(stop: asyncio.Event, seconds: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()
    return stop.is_set()


def _config(app: EngineApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="error",
        timeout_graceful_shutdown=round(app.settings.pace.drain_seconds),
        timeout_keep_alive=5,
    )
