"""Serving: the sockets are bound first, so that a port in use is one clear sentence; then uvicorn runs."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn

from control_plane import logs
from control_plane.connections import LimitedProtocol
from control_plane.errors import StartError
from control_plane.garbage import search_seldom, unsearched
from control_plane.main import Assembly, assemble
from control_plane.settings import Settings

GRACE_SECONDS = 5
BACKLOG = 1024


class _Server(uvicorn.Server):
    """Uvicorn with our signals and a ready file."""

    def __init__(self, config: uvicorn.Config, assembly: Assembly, ready: "_Ready") -> None:
        super().__init__(config)
        self._assembly = assembly
        self._ready = ready
        self.failure: StartError | None = None
        """Why it could not say that it listens; it ends in order, and then this is raised."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT end the server in order, and the process with 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        if not self.started:
            return
        search_seldom()
        try:
            self._ready.write()
        except StartError as error:
            self.failure = error
            self.should_exit = True

    def _stop(self) -> None:
        self._assembly.stopping.is_stopping = True  # requests that wait for a change answer now
        self.should_exit = True


class _Ready:
    """The file that says where the server listens."""

    def __init__(self, path: Path | None, url: str, metrics_url: str) -> None:
        self._path = path
        self._content = {"url": url, "metrics_url": metrics_url, "pid": os.getpid()}

    def write(self) -> None:
        """Write it in one step, and log the same."""
        logs.get().info(logs.SERVER_STARTED, **self._content)
        if self._path is not None:
            try:
                draft = self._path.with_name(f".{self._path.name}.draft")
                draft.write_text(json.dumps(self._content))
                os.replace(draft, self._path)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                raise StartError(
                    f"ready_file {self._path} can't be written: {reason}. Give a path in a folder that this user may "
                    "write, on a disk with space"
                ) from None


def serve(settings: Settings) -> None:
    """Run until a signal comes; raises `StartError` when a port can't be had, and as `assemble` does."""
    logs.configure()
    with closing(_bind(settings.host, settings.port, "port")) as listener:
        with unsearched():
            assembly = assemble(settings)
        with _metrics(assembly, settings) as metrics_port:
            url = _url(settings.host, listener.getsockname()[1])
            ready = _Ready(settings.ready_file, url, _url(settings.host, metrics_port))
            server = _Server(_config(assembly), assembly, ready)
            asyncio.run(server.serve(sockets=[listener]))
    if server.failure is not None:
        raise server.failure
    logs.get().info(logs.SERVER_STOPPED)


def _config(assembly: Assembly) -> uvicorn.Config:
    return uvicorn.Config(
        assembly.app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        http=LimitedProtocol,
        ws="none",
    )


@contextmanager
def _metrics(assembly: Assembly, settings: Settings) -> Iterator[int]:
    try:
        server, _thread = assembly.meter.serve(settings.host, settings.metrics_port)
    except OSError as error:
        raise StartError(_in_use(settings.host, settings.metrics_port, "metrics_port", error)) from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _bind(host: str, port: int, setting: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise StartError(_in_use(host, port, setting, error)) from error
    return listener


def _in_use(host: str, port: int, setting: str, error: OSError) -> str:
    return (
        f"can't listen on {host}:{port} ({error.strerror}): another process may hold the port. "
        f"Give another '{setting}' in the settings, or 0 to pick a free one"
    )


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
