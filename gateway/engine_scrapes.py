"""Reads the metrics of every engine again and again, and tells the router how busy each is and whether it restarted.

A failure leaves the last figures as they are: the router knows how old they are, and is careful with old ones.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Protocol

import structlog

from gateway.arms import arms_of
from gateway.endpoint_tasks import EndpointTasks
from gateway.engine_pages import EnginePage, PageNames, read_page
from gateway.index import SnapshotIndex
from gateway.page_fetch import PageError, PageFault, PageSource
from gateway.router import EngineMetrics, Router
from gateway.scrape_metrics import ScrapeMetrics

FOLLOW_SECONDS = 0.25
"""How soon a new endpoint of the snapshot is watched."""
_LEAST_PAUSE_SECONDS = 0.05

_log = structlog.get_logger("gateway.scrapes")


class Endpoint(NamedTuple):
    """An engine that is watched."""

    address: str
    engine: str
    deployment: str


class Tables(Protocol):
    """Whoever holds the tables in use."""

    @property
    def index(self) -> SnapshotIndex | None:
        """The tables, once there are some."""


@dataclass(slots=True)
class _Seen:
    """What is known of one engine from one time to the next."""

    source: PageSource
    page: EnginePage | None = None
    asks_for_all: bool = False
    """It answers a question for single metrics with none of them."""
    fault: PageFault | None = None


class EngineScrapes:
    """The loop."""

    def __init__(
        self,
        tables: Tables,
        router: Router,
        names: Mapping[str, PageNames],
        metrics: ScrapeMetrics,
        *,
        seconds: float,
        clock: Callable[[], float],
        chance: Random,
        on_restart: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._tables = tables
        self._router = router
        self._names = names
        """Engine -> its page; engines without one are not read."""
        self._metrics = metrics
        self._seconds = seconds
        self._clock = clock
        """The router's."""
        self._chance = chance
        self._on_restart = on_restart
        self._tasks = EndpointTasks(self._watch)
        self._index: SnapshotIndex | None = None

    async def run(self) -> None:
        """Watch the endpoints of the snapshot in use, whichever that is."""
        try:
            while True:
                self.follow()
                await asyncio.sleep(FOLLOW_SECONDS)
        finally:
            await self._tasks.end()

    def follow(self) -> None:
        """Watch what the snapshot names, once."""
        index = self._tables.index
        wanted = self._endpoints(index) if index is not None else ()
        if index is not self._index and index is not None:
            self._index = index
            self._metrics.keep_only({endpoint.address: endpoint.deployment for endpoint in wanted})
        self._tasks.follow(wanted)

    def _endpoints(self, index: SnapshotIndex) -> tuple[Endpoint, ...]:
        found = {
            endpoint.address: Endpoint(endpoint.address, arm.engine, arm.deployment)
            for route in index.routes.values()
            for arm in arms_of(route)
            if arm.hosted is None and arm.engine in self._names
            for endpoint in arm.endpoints
        }
        return tuple(found.values())

    def _page_address(self, endpoint: Endpoint) -> str:
        port = self._names[endpoint.engine].port
        return endpoint.address if port is None else f"{endpoint.address.rpartition(':')[0]}:{port}"

    async def _watch(self, endpoint: Endpoint) -> None:
        """One engine, for as long as it is in the snapshot: one question at a time."""
        seen, loop = _Seen(PageSource(self._page_address(endpoint))), asyncio.get_running_loop()
        try:
            await asyncio.sleep(self._chance.random() * self._seconds)  # not all in one moment
            while True:
                began = loop.time()
                await self._read(endpoint, seen)
                await asyncio.sleep(max(_LEAST_PAUSE_SECONDS, self._seconds - (loop.time() - began)))
        finally:
            seen.source.close()

    async def _read(self, endpoint: Endpoint, seen: _Seen) -> None:
        names = self._names[endpoint.engine]
        target = names.path if seen.asks_for_all else f"{names.path}?{names.query}"
        try:
            text = await seen.source.fetch(target)
        except PageError as error:
            self._failed(endpoint, seen, error.fault)
            return
        page = read_page(text, names)
        if page is None:
            seen.asks_for_all = not seen.asks_for_all
            self._failed(endpoint, seen, PageFault.UNREADABLE)
            return
        self._tell(endpoint, seen, page)

    def _tell(self, endpoint: Endpoint, seen: _Seen, page: EnginePage) -> None:
        address, before = endpoint.address, seen.page
        if seen.fault is not None:
            _log.info("engine.metrics_are_back", address=address, deployment=endpoint.deployment)
        if before is not None and page.is_after_restart(before):
            _log.info("engine.restarted", address=address, deployment=endpoint.deployment)
            self._router.restarted(address)
            self._metrics.restarted(endpoint.deployment)
            self._on_restart(address)
        if page.cache_tokens is not None and (before is None or page.cache_tokens != before.cache_tokens):
            self._router.capacity(address, page.cache_tokens)
        if page.block_tokens is not None:
            self._router.cut_into(address, page.block_tokens)
        figures = EngineMetrics(self._clock(), page.running, page.waiting, page.kv_usage)
        self._router.measured(address, figures)
        self._metrics.read(address, figures)
        seen.page, seen.fault = page, None

    def _failed(self, endpoint: Endpoint, seen: _Seen, fault: PageFault) -> None:
        self._metrics.failed(endpoint.deployment, fault.value)
        if fault is not seen.fault:
            _log.warning(
                "engine.metrics_missing",
                address=endpoint.address,
                deployment=endpoint.deployment,
                engine=endpoint.engine,
                fault=fault.value,
            )
        seen.fault = fault
