"""Starts the workers of a gateway, watches them, and shows what they are doing on one page."""

import asyncio
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge

from gateway.endpoints import EndpointFile
from gateway.envoy import EnvoyPlaces, bootstrap_json
from gateway.errors import GatewayError
from gateway.hub import Hub
from gateway.local_files import keep_private, named_errors, prepare_folders, remove_dead_socket, write_where_other
from gateway.ready_file import announce
from gateway.settings import GatewaySettings
from gateway.stop_signal import on_stop_signal
from gateway.supervisor_page import SupervisorPage
from gateway.worker_sockets import sockets_of, worker_settings

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
STEADY_SECONDS = 30.0
"""A worker that lived so long is started again without a longer pause."""
START_SECONDS = 60.0
_SPARE_SECONDS = 7.0
_POLL_SECONDS = 0.02
_EVERY_SECONDS = 1.0
_log = structlog.get_logger("gateway.workers")


class Supervisor:
    """The process that people start where there are several workers; it has no part in a request."""

    def __init__(self, settings: GatewaySettings, settings_path: Path) -> None:
        self._settings = settings
        self._settings_path = settings_path
        self._told_to_stop = asyncio.Event()
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._is_ready = False
        self._problem: GatewayError | None = None
        self._hub = Hub(settings.hub_budgets_path)
        self.registry = registry = CollectorRegistry()
        """Its own metrics."""
        running = Gauge(
            "enginehouse_gateway_workers", "Worker processes of this gateway that run now.", registry=registry
        )
        running.set_function(lambda: float(len(self._processes)))
        self._restarts = Counter(
            "enginehouse_gateway_worker_restarts",
            "Workers that ended and were started again, by their number.",
            ("worker",),
            registry=registry,
        )
        self._page = SupervisorPage(registry, self._metrics_urls)

    async def serve(self) -> None:
        """Until SIGTERM or SIGINT; raises GatewayError when a worker can't even start."""
        settings = self._settings
        on_stop_signal(self._told_to_stop.set)
        self._prepare()
        remove_dead_socket(settings.hub_path)
        with named_errors(settings):
            hub = await self._hub.listen(settings.hub_path)
            keep_private(settings.hub_path)
        keepers = [asyncio.create_task(self._keep(number)) for number in range(settings.workers)]
        saving = asyncio.create_task(self._save())
        try:
            if await self._all_are_ready():
                pages = await self._page.listen(settings.metrics_host, settings.metrics_port)
                self._is_ready = True
                announce(self._settings, pages, workers=[self._processes[n].pid for n in sorted(self._processes)])
                await self._told_to_stop.wait()
                pages.close()
        finally:
            self._told_to_stop.set()
            settings.ready_file.unlink(missing_ok=True)
            await self._end_workers(keepers)
            saving.cancel()
            await asyncio.gather(saving, return_exceptions=True)
            hub.close()
            await self._hub.close()
            await self._page.close()
            self._keep_budgets()
            settings.hub_path.unlink(missing_ok=True)
        if self._problem is not None:
            raise self._problem

    def _prepare(self) -> None:
        settings = self._settings
        with named_errors(settings):
            prepare_folders(settings)
            places = EnvoyPlaces(
                listen_host=settings.listen_host,
                listen_port=settings.listen_port,
                admin_port=settings.admin_port,
                workers=sockets_of(settings),
                endpoints_path=settings.endpoints_path,
            )
            write_where_other(settings.envoy_path, bootstrap_json(places))
            if not settings.endpoints_path.exists():
                EndpointFile(settings.endpoints_path).show(frozenset(), time.monotonic())
            try:
                self._hub.load()
            except (ValueError, msgspec.DecodeError):
                _log.error("budgets.not_loaded", path=str(settings.hub_budgets_path))

    async def _keep(self, number: int) -> None:
        """One worker, started again and again, ever more slowly while it ends at once."""
        ready, pause = worker_settings(self._settings, number).ready_file, FIRST_PAUSE_SECONDS
        command = (sys.executable, "-m", "gateway", "--settings", str(self._settings_path), "--worker", str(number))
        while not self._told_to_stop.is_set():
            ready.unlink(missing_ok=True)
            started = time.monotonic()
            process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.PIPE)
            self._processes[number] = process
            code = await process.wait()
            del self._processes[number]
            if self._told_to_stop.is_set():
                return
            if not self._is_ready:
                self._problem = GatewayError(f"worker {number} ended with {code} before it was ready")
                self._told_to_stop.set()
                return
            pause = FIRST_PAUSE_SECONDS if time.monotonic() - started > STEADY_SECONDS else pause
            _log.error("worker.ended", worker=number, code=code, again_in_seconds=pause)
            self._restarts.labels(str(number)).inc()
            await self._stopped_within(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            await asyncio.wait_for(self._told_to_stop.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def _all_are_ready(self) -> bool:
        files = [worker_settings(self._settings, number).ready_file for number in range(self._settings.workers)]
        end = time.monotonic() + START_SECONDS
        while not all(file.exists() for file in files):
            if await self._stopped_within(_POLL_SECONDS):
                return False
            if time.monotonic() > end:
                raise GatewayError(f"the workers were not ready within {START_SECONDS:.0f} s; their log lines say why")
        return True

    async def _end_workers(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        for process in tuple(self._processes.values()):
            process.terminate()
        patience = self._settings.drain_seconds + self._settings.usage.stop_seconds + _SPARE_SECONDS
        await asyncio.wait(keepers, timeout=patience)
        for number, process in tuple(self._processes.items()):
            _log.error("worker.killed", worker=number)
            process.kill()
        await asyncio.gather(*keepers, return_exceptions=True)

    def _metrics_urls(self) -> dict[str, str]:
        """Of those that are ready, by their numbers."""
        urls = {}
        for number in sorted(self._processes):
            try:
                page = json.loads(worker_settings(self._settings, number).ready_file.read_bytes())
            except (OSError, ValueError):
                continue
            urls[str(number)] = page["metrics_url"]
        return urls

    async def _save(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            await asyncio.to_thread(self._keep_budgets)

    def _keep_budgets(self) -> None:
        try:
            self._hub.save()
        except OSError as error:
            _log.error("budgets.not_kept", error=error.strerror)
