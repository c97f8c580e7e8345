"""Metrics of what is held now, by which a leak is seen: without requests each goes back to where it was."""

import asyncio
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge

from gateway.decision import DecisionCore
from gateway.guard import Guard
from gateway.tickets import Tickets
from gateway.unguarded import Unguarded


def watch_held(
    registry: CollectorRegistry, core: DecisionCore, tickets: Tickets, guard: Guard, unguarded: Unguarded
) -> None:
    """Ask at each scrape how many requests each part has, and how many tasks there are."""
    held = Gauge(
        "enginehouse_gateway_requests_held",
        "Requests on their way, by the part that has them: admitted (all of them), at_engines (having their turn), "
        "arriving (decided, not passed on by Envoy yet), guarded, unguarded.",
        ("part",),
        registry=registry,
    )
    parts: dict[str, Callable[[], int]] = {
        "admitted": lambda: core.running,
        "at_engines": lambda: core.turns.running,
        "arriving": lambda: len(tickets),
        "guarded": lambda: guard.running,
        "unguarded": lambda: len(unguarded),
    }
    for part, count in parts.items():
        held.labels(part).set_function(count)
    tasks = Gauge("enginehouse_gateway_tasks", "Tasks of the event loop, loops included.", registry=registry)
    tasks.set_function(lambda: len(asyncio.all_tasks()))
