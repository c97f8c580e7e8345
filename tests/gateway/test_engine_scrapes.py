"""Engines are read again and again: what they say reaches the router, what fails grows old, who is new is empty."""

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import httpx2
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from engines.request_side import metrics_by_engine
from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewaySnapshot
from gateway import page_fetch
from gateway.engine_pages import page_names
from gateway.engine_scrapes import EngineScrapes
from gateway.index import index_of
from gateway.router import Router, RoutingRequest
from gateway.scrape_metrics import ScrapeMetrics
from tests.gateway.simulated import MODEL, publish, simulated_engine

NAMES = {engine: names for engine, dialects in metrics_by_engine().items() if (names := page_names(dialects))}


@dataclass
class PageServer:
    """An engine's metrics over HTTP, as the test writes them."""

    running: int = 0
    waiting: int = 0
    usage: float = 0.0
    started: float = 1.7e9
    blocks: int = 4
    status: int = 200
    is_silent: bool = False
    understands_names: bool = True
    body: bytes | None = None
    port: int = 0
    asked: list[str] = field(default_factory=list)
    open: int = 0
    most_open: int = 0

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def page(self, target):
        if self.body is not None:
            return self.body
        if "name%5B%5D" in target and not self.understands_names:
            return b"\n"
        return (
            f'vllm:num_requests_running{{engine="0"}} {self.running}\n'
            f'vllm:num_requests_waiting{{engine="0"}} {self.waiting}\n'
            f'vllm:kv_cache_usage_perc{{engine="0"}} {self.usage}\n'
            f'vllm:cache_config_info{{block_size="32",engine="0",num_gpu_blocks="{self.blocks}"}} 1.0\n'
            f"process_start_time_seconds {self.started}\n"
        ).encode()

    async def serve(self, reader, writer):
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while line := (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0].decode():
                self.asked.append(line.split(" ")[1])
                if self.is_silent:
                    await reader.read()
                    return
                body = self.page(line)
                writer.write(f"HTTP/1.1 {self.status} X\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()


@dataclass
class Tables:
    index: object = None


@dataclass
class Watching:
    tables: Tables
    router: Router
    registry: CollectorRegistry
    restarted: list[str]

    def saturation(self, address, later=0.0):
        return self.router.saturations([address], time.time() + later)[0]

    def metric(self, name):
        lines = generate_latest(self.registry).decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(name)}


def index_with(*addresses, engine="vllm"):
    endpoints = tuple(GatewayEndpoint(address=address) for address in addresses)
    arm = GatewayArm(deployment="chat", identity="f" * 32, engine=engine, endpoints=endpoints)
    return index_of(GatewaySnapshot(routes=(GatewayRoute(model="m", tenants=("acme",), arms=(arm,)),)))


@asynccontextmanager
async def watching(*servers, engine="vllm"):
    """A watch over the servers, with real connections; all is ended with the test."""
    listeners = [await asyncio.start_server(server.serve, "127.0.0.1", 0) for server in servers]
    for server, listener in zip(servers, listeners, strict=True):
        server.port = listener.sockets[0].getsockname()[1]
    tables, router, registry, restarted = Tables(), Router(), CollectorRegistry(), []
    tables.index = index_with(*(server.address for server in servers), engine=engine)
    scrapes = EngineScrapes(
        tables,
        router,
        NAMES,
        ScrapeMetrics(registry, time.time),
        seconds=0.05,
        clock=time.time,
        chance=Random(0),  # noqa: S311
        on_restart=restarted.append,
    )
    task = asyncio.create_task(scrapes.run())
    try:
        yield Watching(tables, router, registry, restarted)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for listener in listeners:
            listener.close()
        await until(lambda: not any(server.open for server in servers), "every connection is closed")


async def until(condition, what, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        await asyncio.sleep(0.01)


async def test_what_an_engine_says_reaches_the_router_over_one_connection():
    server = PageServer(waiting=5)
    async with watching(server) as seen:
        await until(lambda: seen.saturation(server.address) == 1.0, "five wait")
        server.waiting, server.usage = 0, 0.4
        await until(lambda: seen.saturation(server.address) == 0.5, "the cache is half full of what it may be")
        assert seen.router.block_tokens(arms_of(seen)) == 32
        assert server.most_open == 1
        assert server.asked[0].startswith("/metrics?name%5B%5D=vllm:num_requests_running&")
        assert (
            seen.metric("enginehouse_gateway_engine_kv_usage")['enginehouse_gateway_engine_kv_usage{deployment="chat"}']
            == 0.4
        )


def arms_of(seen):
    return seen.tables.index.routes["acme", "m"].arms


async def test_the_size_of_the_cache_bounds_what_is_believed_to_be_there():
    server = PageServer(blocks=4)
    async with watching(server) as seen:
        await until(lambda: seen.router.block_tokens(arms_of(seen)), "a first page")
        request = RoutingRequest(tuple(range(1, 9)), 32, 300)
        router, endpoints = seen.router, arms_of(seen)[0].endpoints
        router.send(router.choose(request, endpoints, time.time(), Random(0)), time.time())  # noqa: S311
        again = router.choose(request, endpoints, time.time(), Random(0)).candidates[0]  # noqa: S311
        assert again.cached_tokens == 4 * 32


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"status": 503}, "status"),
        ({"body": b"no metrics"}, "unreadable"),
        ({"body": b"x" * (page_fetch.MAX_PAGE_BYTES + 1)}, "too_long"),
        ({"is_silent": True}, "late"),
    ],
)
async def test_what_fails_grows_old_and_counts_as_full_until_it_comes_back(monkeypatch, change, reason):
    monkeypatch.setattr(page_fetch, "FETCH_SECONDS", 0.3)
    server = PageServer()
    async with watching(server) as seen:
        await until(lambda: seen.metric("enginehouse_gateway_engine_stated_requests"), "a first page")
        await until(lambda: seen.saturation(server.address) == 0.0 and server.asked, "an idle engine")
        good = {name: getattr(server, name) for name in change}
        for name, value in change.items():
            setattr(server, name, value)
        failures = f'enginehouse_gateway_engine_scrape_failures_total{{deployment="chat",reason="{reason}"}}'
        await until(lambda: seen.metric(failures).get(failures, 0) >= 2, "it fails again and again")
        assert seen.saturation(server.address, later=1.5) == 1.0
        for name, value in good.items():
            setattr(server, name, value)
        count = len(server.asked)
        await until(lambda: len(server.asked) > count + 3, "it is asked on")
        assert seen.saturation(server.address) == 0.0


async def test_an_engine_that_is_not_there_is_asked_until_it_is():
    server = PageServer()
    async with watching(server) as seen:
        gone = PageServer(port=1)
        seen.tables.index = index_with(gone.address)
        name = 'enginehouse_gateway_engine_scrape_failures_total{deployment="chat",reason="unreachable"}'
        await until(lambda: seen.metric(name), "nobody answers")
        age = 'enginehouse_gateway_engine_metrics_age_seconds{deployment="chat"}'
        assert seen.metric(age) == {age: float("inf")}
        seen.tables.index = index_with(server.address)
        await until(lambda: seen.metric(age)[age] < 1.0, "another endpoint")


async def test_a_new_process_is_told_once():
    server = PageServer()
    async with watching(server) as seen:
        await until(lambda: len(server.asked) > 2, "some pages")
        assert seen.restarted == []
        server.started += 60
        await until(lambda: seen.restarted, "another start")
        count = len(server.asked)
        await until(lambda: len(server.asked) > count + 2, "more pages")
        assert seen.restarted == [server.address]


async def test_an_engine_that_answers_single_names_with_nothing_is_asked_for_all():
    server = PageServer(waiting=5, understands_names=False)
    async with watching(server) as seen:
        await until(lambda: seen.saturation(server.address) == 1.0, "the whole page")
        assert server.asked[-1] == "/metrics"


async def test_endpoints_come_and_go_with_the_snapshot_and_engines_without_metrics_are_left_alone():
    one, two = PageServer(), PageServer()
    async with watching(one, two) as seen:
        await until(lambda: one.asked and two.asked, "both are read")
        seen.tables.index = index_with(two.address)
        await until(lambda: one.open == 0, "the first is left")
        assert two.open == 1
        seen.tables.index = index_with(two.address, engine="deepspeed")
        await until(lambda: two.open == 0, "it has no metrics")


def test_a_gateway_process_reads_a_simulated_engine(gateway, world, until):
    with simulated_engine("--time-scale", "1") as engine:
        publish(gateway, world, engine)
        age = "enginehouse_gateway_engine_metrics_age_seconds"
        until(lambda: gateway.metric(age) < 1.0, "fresh figures")
        assert gateway.metric("enginehouse_gateway_engine_stated_requests{") == 0
        headers = {"authorization": f"Bearer {world.acme_key}"}
        body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 2000}
        running = 'enginehouse_gateway_engine_stated_requests{deployment="chat",state="running"}'
        with httpx2.stream(
            "POST", f"{gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=10
        ) as answer:
            assert answer.status_code == 200
            until(lambda: gateway.metric(running) == 1, "one request runs")
        until(lambda: gateway.metric(running) == 0, "none is left")
