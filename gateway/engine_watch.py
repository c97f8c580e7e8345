"""Puts together what a gateway hears from its engines."""

import asyncio
import random
import time

from prometheus_client import CollectorRegistry

from engines.request_side import metrics_by_engine
from gateway.decision import DecisionCore
from gateway.engine_pages import page_names
from gateway.engine_scrapes import EngineScrapes
from gateway.kv_metrics import KvMetrics
from gateway.kv_subscriber import KvSubscriber
from gateway.scrape_metrics import ScrapeMetrics

_PAGES = {engine: page for engine, rows in metrics_by_engine().items() if (page := page_names(rows)) is not None}
"""Read when the program starts, as its code is: later it may have another user's rights."""


class EngineWatch:
    """Reads the metrics of all engines that have some, and hears which prompts those hold that say so."""

    def __init__(self, core: DecisionCore, registry: CollectorRegistry, scrape_seconds: float) -> None:
        self._events = KvSubscriber(core, core.router, KvMetrics(registry), time.time)
        self._scrapes = EngineScrapes(
            core,
            core.router,
            _PAGES,
            ScrapeMetrics(registry, time.time),
            seconds=scrape_seconds,
            clock=time.time,
            chance=random.Random(),  # noqa: S311 it spreads the first questions
            on_restart=self._events.restarted,
        )

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._scrapes.run())
            group.create_task(self._events.run())
