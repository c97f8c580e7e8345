"""Builds the gateway from its settings, runs it, and ends it cleanly."""

import asyncio
import random
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import structlog
from prometheus_client import CollectorRegistry

from gateway.accounting import Accounting
from gateway.budget_lines import account_of_unit
from gateway.chat_sockets import ChatSockets
from gateway.decision import DecisionCore
from gateway.endpoints import EndpointFile, EnvoyAdmin
from gateway.engine_connections import EngineConnections
from gateway.engine_watch import EngineWatch
from gateway.envoy import ADMIN_HOST, EnvoyPlaces, bootstrap_json
from gateway.envoy_presence import EnvoyPresence
from gateway.filter_setup import filter_table
from gateway.garbage import look_seldom
from gateway.guard import Guard, GuardSettings
from gateway.held_metrics import watch_held
from gateway.hosted_keys import HostedKeys
from gateway.http2.protocol import Http2Server
from gateway.http_protocol import HttpServer
from gateway.local_files import (
    BACKLOG,
    keep_private,
    named_errors,
    prepare_folders,
    remove_dead_socket,
    write_where_other,
)
from gateway.metrics_port import MetricsPort
from gateway.own_door import OwnDoor
from gateway.picker_service import picker_of
from gateway.ready_file import announce
from gateway.router import Router
from gateway.server import DecisionService
from gateway.settings import GatewaySettings
from gateway.shadows import Shadows
from gateway.sharing import router_settings, sharing_of
from gateway.socket_metrics import SocketMetrics
from gateway.socket_tickets import SocketTickets
from gateway.stop_signal import on_stop_signal
from gateway.store import SnapshotStore
from gateway.sync import SnapshotSwitch, SnapshotSync
from gateway.telemetry import Telemetry, telemetry_page
from gateway.tickets import TicketNumbers, Tickets
from gateway.token_lease import THE_WHOLE
from gateway.unguarded import Unguarded, access_log_server
from gateway.waiting_metrics import WaitingMetrics
from gateway.worker import Worker, watch_parent
from gateway.worker_sockets import sockets_of

if TYPE_CHECKING:
    from gateway.spans import Spans

DRAIN_SECONDS = 2.0
_TICK_SECONDS = 1.0

_log = structlog.get_logger("gateway.main")


class Gateway:
    """One gateway process."""

    def __init__(self, settings: GatewaySettings, worker: Worker | None = None) -> None:
        """``worker``: which one it is, where it is one of several."""
        self._settings = settings
        self._worker = worker
        self._telemetry = Telemetry()
        self._accounting = Accounting(settings, self._telemetry.registry)
        self._sharing = sharing_of(settings, self._telemetry.registry, worker)
        self._core = self._new_core()
        self._telemetry.watch_waiting(self._core.turns.waiting)
        self._accounting.arms.watch_ejected(lambda: len(self._core.router.ejections.ejected(time.time())))
        numbers = TicketNumbers(secrets.token_bytes)
        self._tickets = Tickets(numbers)
        self._unguarded = Unguarded(numbers, time.time)
        self._socket_tickets = SocketTickets(numbers)
        self._spans = _spans(settings, self._telemetry.registry)
        service = DecisionService(
            self._core,
            self._telemetry,
            self._tickets,
            self._unguarded,
            self._socket_tickets,
            now_unix_seconds=time.time,
            now_monotonic_seconds=time.perf_counter,
            begin_span=self._spans.begin if self._spans else lambda *_: (),
            second_look=self._sharing.second_look if self._sharing else None,
            sockets_of_worker=worker.sockets if worker else None,
        )
        self._decisions = service.server()
        self._engines = EngineConnections(HostedKeys(settings.hosted_keys_dir))
        self._shadows = Shadows(self._engines, self._accounting.arms)
        guard = Guard(self._tickets, self._engines, GuardSettings(settings.keep_alive_seconds), self._shadows)
        self._guard = guard.server(service.fail)
        watch_held(self._telemetry.registry, self._core, self._tickets, guard, self._unguarded)
        self._picker = picker_of(settings, self._core, self._telemetry, self._spans, self._sharing, self._shadows)
        door = OwnDoor(settings.listen_host, settings.listen_port)
        metrics = SocketMetrics(self._telemetry.registry)
        self._sockets = ChatSockets(self._socket_tickets, self._tickets, door, settings.websockets, metrics)
        self._watch = EngineWatch(self._core, self._telemetry.registry, settings.scrape_seconds)
        self._pages = MetricsPort(telemetry_page(self._telemetry, lambda: self._core.index is not None))

    @property
    def registry(self) -> CollectorRegistry:
        """Its metrics."""
        return self._telemetry.registry

    def _new_core(self) -> DecisionCore:
        sharing, settings = self._sharing, self._settings
        return DecisionCore(
            new_account=sharing.new_account if sharing else account_of_unit,
            clock=time.time,
            chance=random.Random(),  # noqa: S311
            on_end=self._accounting.ended,
            stopwatch=time.perf_counter,
            on_waited=WaitingMetrics(self._telemetry.registry).waited,
            router=sharing.router if sharing else Router(router_settings(settings)),
            share=self._worker.share if self._worker else THE_WHOLE,
        )

    async def serve(self) -> None:
        """Everything from the first file to the last."""
        told_to_stop = asyncio.Event()
        on_stop_signal(told_to_stop.set)
        if self._worker is not None:
            watch_parent(told_to_stop.set)
        settings = self._settings
        with named_errors(settings):
            prepare_folders(settings)
            if self._worker is None:
                write_where_other(settings.envoy_path, bootstrap_json(_places(settings)))
            endpoints = self._worker.endpoints() if self._worker else EndpointFile(settings.endpoints_path)
            if not settings.endpoints_path.exists():
                endpoints.show(frozenset(), time.monotonic())
            self._core.start_from(self._accounting.open(lambda: self._core.kept_budgets(time.time())))
        authorities = httpx2.create_ssl_context(trust_env=False)  # 30 ms and a megabyte, so that both take one
        async with (
            httpx2.AsyncClient(base_url=settings.control_plane_url, trust_env=False, verify=authorities) as client,
            httpx2.AsyncClient(trust_env=False, verify=authorities) as moderation,
        ):
            filters = filter_table(settings, moderation, self._telemetry.registry)
            admin = EnvoyAdmin(client, f"http://{ADMIN_HOST}:{settings.admin_port}")
            switch = SnapshotSwitch(self._core, endpoints, admin, self._telemetry, filters)
            store = self._worker.store() if self._worker else SnapshotStore(settings.snapshot_path)
            sync = SnapshotSync(client, settings.token_file, switch, store, self._telemetry)
            await sync.start_from_disk()
            await self._picker.start(told_to_stop.is_set, shares_port=self._worker is not None)
            await self._serve_until(told_to_stop, sync, client)

    async def _serve_until(self, told_to_stop: asyncio.Event, sync: SnapshotSync, client: httpx2.AsyncClient) -> None:
        decisions = await self._listen_for_envoy(self._settings.socket_path, self._decisions)
        guard = await self._listen_for_envoy(self._settings.guard_path, self._guard)
        ends = access_log_server(self._unguarded, self._tickets)
        self._unguarded.watch(EnvoyPresence(lambda: self._decisions.connections, lambda: ends.connections))
        log = await self._listen_for_envoy(self._settings.access_log_path, ends)
        await self._listen_for_sockets()
        try:
            pages = await self._pages.listen(self._settings.metrics_host, self._settings.metrics_port)
            loops = [asyncio.create_task(loop) for loop in (sync.run(), self._tick(), self._watch.run())]
            for loop in loops:
                loop.add_done_callback(lambda _: told_to_stop.set())  # without it this gateway would grow old unseen
            self._accounting.start(client, told_to_stop.set)
            if self._sharing is not None:
                self._sharing.start(told_to_stop.set)
            announce(self._settings, pages)
            look_seldom()
            await told_to_stop.wait()
            _log.info("gateway.stopping")
            self._unguarded.watch(None)
            decisions.close()
            await self._decisions.drain(DRAIN_SECONDS)
            await self._tickets.drain(DRAIN_SECONDS)  # what was admitted still finds the guard
            for server in (guard, pages):
                server.close()
            await asyncio.gather(
                self._guard.drain(self._settings.drain_seconds),
                self._sockets.drain(self._settings.drain_seconds),
                self._picker.drain(self._settings.drain_seconds),
                self._unguarded.drain(ends, self._settings.drain_seconds),
                self._pages.drain(DRAIN_SECONDS),
            )
            log.close()  # until now Envoy may connect there, for the first end that it has to tell
            await self._end_parts(loops)
        finally:
            await self._shadows.close()
            self._engines.close()
            told = self._settings
            for path in (told.ready_file, told.socket_path, told.guard_path, told.access_log_path, told.sockets_path):
                path.unlink(missing_ok=True)

    async def _end_parts(self, loops: Sequence[asyncio.Task[None]]) -> None:
        """After the last request: what runs beside them, and what was noted of them."""
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await self._accounting.close()
        if self._sharing is not None:
            await self._sharing.close()
        if self._spans is not None:
            await asyncio.to_thread(self._spans.close)

    async def _tick(self) -> None:
        """Once a second: give up what never came, and charge what was lost."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.time()
            self._tickets.expire(now)
            self._unguarded.expire(now)
            self._socket_tickets.expire(now)
            self._core.tick(now)
            self._accounting.look(self._core.index)
            self._sockets.look(self._core.index, now)
            if self._core.index is not None:
                self._engines.keep_only(self._core.index.addresses | self._core.index.hosted)

    async def _listen_for_envoy(self, path: Path, answering: HttpServer | Http2Server) -> asyncio.Server:
        remove_dead_socket(path)
        with named_errors(self._settings):
            server = await asyncio.get_running_loop().create_unix_server(
                answering.connection, str(path), backlog=BACKLOG
            )
            keep_private(path)
        return server

    async def _listen_for_sockets(self) -> None:
        path = self._settings.sockets_path
        remove_dead_socket(path)
        with named_errors(self._settings):
            await self._sockets.listen(path)
            keep_private(path)


def _spans(settings: GatewaySettings, registry: CollectorRegistry) -> "Spans | None":
    """What records spans; its library costs a second and memory, so that only those who want it load it."""
    if settings.tracing is None:
        return None
    from gateway.spans import Spans

    return Spans(settings.tracing, registry)


def _places(settings: GatewaySettings) -> EnvoyPlaces:
    return EnvoyPlaces(
        listen_host=settings.listen_host,
        listen_port=settings.listen_port,
        admin_port=settings.admin_port,
        workers=sockets_of(settings),
        endpoints_path=settings.endpoints_path,
    )
