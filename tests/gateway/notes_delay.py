"""How long a gateway's word of a request takes to another one's index, through a real server between them."""

import asyncio
import time
from collections.abc import Callable
from random import Random

from prometheus_client import CollectorRegistry

from fleet.snapshot import GatewayEndpoint
from gateway.router import RouterSettings, RoutingRequest
from gateway.routing_news import RoutingNews, TellingRouter
from gateway.valkey_settings import SharedStateSettings
from gateway.valkey_store import ValkeyNotes, connect

ENDPOINTS = tuple(GatewayEndpoint(address=f"e:{number}") for number in range(3))
BLOCKS, BLOCK_TOKENS = 20, 128
POLL_SECONDS = 0.001
PATIENCE_SECONDS = 10.0


async def delays(settings: SharedStateSettings, requests: int) -> list[float]:
    """Seconds from sending until the other gateway believes the same of the caches, of each request, sorted."""
    one, other = (TellingRouter(RouterSettings(gateways=2), name) for name in ("one", "other"))
    news = [
        RoutingNews(router, ValkeyNotes(connect(settings), settings), time.monotonic, CollectorRegistry())
        for router in (one, other)
    ]
    loops = [asyncio.create_task(each.run()) for each in news]
    try:
        await _until(lambda: _is_heard(one, other))
        return sorted([await _delay(one, other, number) for number in range(requests)])
    finally:
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        for each in news:
            await each.close()


async def _delay(one: TellingRouter, other: TellingRouter, number: int) -> float:
    request = _prompt(number)
    choice, began = one.choose(request, ENDPOINTS, time.monotonic(), Random(number)), time.monotonic()  # noqa: S311
    sent = one.send(choice, began)
    await _until(lambda: _holders(other, request) == {choice.addresses[0]})
    seconds = time.monotonic() - began
    sent.end(time.monotonic())
    await _until(lambda: not other._loads.in_flight(choice.addresses[0]))
    return seconds


def _is_heard(one: TellingRouter, other: TellingRouter) -> bool:
    """Something is said until the other one listens."""
    request = _prompt(-1)
    one.send(one.choose(request, ENDPOINTS, time.monotonic(), Random(0)), time.monotonic()).end(time.monotonic())  # noqa: S311
    return bool(_holders(other, request)) and not any(other._loads.in_flight(one.address) for one in ENDPOINTS)


def _prompt(number: int) -> RoutingRequest:
    first = 1_000_000 + number * BLOCKS
    return RoutingRequest(tuple(range(first, first + BLOCKS)), BLOCK_TOKENS, BLOCKS * BLOCK_TOKENS + 1)


def _holders(router: TellingRouter, request: RoutingRequest) -> set[str]:
    found = router.choose(request, ENDPOINTS, time.monotonic(), Random(0)).candidates  # noqa: S311
    return {candidate.address for candidate in found if candidate.cached_tokens == BLOCKS * BLOCK_TOKENS}


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110 - another task's doing
            await asyncio.sleep(POLL_SECONDS)
