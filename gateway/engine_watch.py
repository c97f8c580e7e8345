"""Puts together what a gateway hears from its engines."""

import random
import time

from prometheus_client import CollectorRegistry

from engines.request_side import metrics_by_engine
from gateway.decision import DecisionCore
from gateway.engine_pages import page_names
from gateway.engine_scrapes import EngineScrapes
from gateway.scrape_metrics import ScrapeMetrics


def engine_scrapes(core: DecisionCore, registry: CollectorRegistry, seconds: float) -> EngineScrapes:
    """The loop that reads the metrics of all engines that have some."""
    pages = {engine: page_names(dialects) for engine, dialects in metrics_by_engine().items()}
    return EngineScrapes(
        core,
        core.router,
        {engine: names for engine, names in pages.items() if names is not None},
        ScrapeMetrics(registry, time.time),
        seconds=seconds,
        clock=time.time,
        chance=random.Random(),  # noqa: S311 it spreads the first questions
    )
