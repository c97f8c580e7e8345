"""Routers that tell each other: one believes of the other's requests what the other does, and forgets what is over."""

import asyncio
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from fleet.snapshot import GatewayEndpoint
from gateway.hub import Hub, HubNotes
from gateway.lease_store import StoreLostError
from gateway.router import RouterSettings, RoutingRequest
from gateway.routing_news import SILENT_SECONDS, RoutingNews, TellingRouter

ADDRESSES = ("e:0", "e:1", "e:2")
ENDPOINTS = tuple(GatewayEndpoint(address=address) for address in ADDRESSES)
STEPS = st.lists(st.tuples(st.sampled_from(["send", "first", "end"]), st.integers(0, 9)), max_size=40)


class Wire:
    """Brings messages to whoever is on it, unless it is cut."""

    def __init__(self):
        self.ends = []
        self.is_cut = False

    async def send(self, message):
        if self.is_cut:
            raise StoreLostError("cut")
        for end in self.ends:
            end.hear(message)

    async def messages(self):
        raise StoreLostError("not asked here")
        yield b""

    async def close(self):
        pass


def pair(now):
    wire, routers = Wire(), [TellingRouter(RouterSettings(gateways=2), name) for name in ("a", "b")]
    news = [RoutingNews(router, wire, lambda: now[0], CollectorRegistry()) for router in routers]
    wire.ends += news
    return wire, routers, news


def choose(router, request, now):
    return router.choose(request, ENDPOINTS, now, Random(0))  # noqa: S311


def counts(router, now):
    found = choose(router, RoutingRequest(), now).candidates
    return {candidate.address: candidate.load.in_flight for candidate in found}


@given(steps=STEPS)
def test_each_counts_the_requests_of_both_and_none_at_the_end(steps):
    now = [0.0]
    _, routers, news = pair(now)
    live = []
    for what, which in steps:
        now[0] += 0.1
        router = routers[which % 2]
        if what == "send":
            request = RoutingRequest((which,), 128, prompt_tokens=256)
            live.append(router.send(choose(router, request, now[0]), now[0]))
        elif live and what == "first":
            live[which % len(live)].first_token(now[0])
        elif live:
            live.pop(which % len(live)).end(now[0])
        for one in news:
            asyncio.run(one.tell())
        assert counts(routers[0], now[0]) == counts(routers[1], now[0])
        assert sum(counts(routers[0], now[0]).values()) == len(live)
    for one in live:
        one.end(now[0])
    for one in news:
        asyncio.run(one.tell())
    assert {*counts(routers[0], now[0]).values(), *counts(routers[1], now[0]).values()} == {0}


async def test_a_prefix_that_one_has_sent_somewhere_is_known_to_the_other():
    now = [0.0]
    _, (one, other), news = pair(now)
    request = RoutingRequest(tuple(range(100, 140)), 128, prompt_tokens=40 * 128)
    choice = choose(one, request, 0.0)
    one.send(choice, 0.0).end(0.0)
    await news[0].tell()
    assert choose(other, request, 0.1).candidates[0].address == choice.addresses[0]
    assert choose(other, request, 0.1).candidates[0].cached_tokens == 40 * 128


async def test_what_was_lost_on_the_way_is_forgotten_with_the_next_word():
    now = [0.0]
    wire, (one, other), news = pair(now)
    sent = one.send(choose(one, RoutingRequest(), 0.0), 0.0)
    await news[0].tell()
    assert sum(counts(other, 0.0).values()) == 1
    wire.is_cut = True
    sent.end(1.0)
    await news[0].tell()
    wire.is_cut = False
    now[0] = 6.0
    await news[0].tell()
    assert sum(counts(other, 6.0).values()) == 0


async def test_a_gateway_that_falls_silent_leaves_no_load_behind():
    now = [0.0]
    _, (one, other), news = pair(now)
    one.send(choose(one, RoutingRequest(), 0.0), 0.0)
    await news[0].tell()
    now[0] = SILENT_SECONDS
    news[1].forget_silent(now[0])
    assert sum(counts(other, now[0]).values()) == 1
    now[0] += 1
    news[1].forget_silent(now[0])
    assert sum(counts(other, now[0]).values()) == 0


async def test_an_end_is_told_at_once():
    now = [0.0]
    _, (one, other), news = pair(now)
    one.send(choose(one, RoutingRequest(), 0.0), 0.0)
    await news[0].tell()
    await news[0].close()
    assert sum(counts(other, 0.0).values()) == 0


@given(st.binary(max_size=60))
def test_other_bytes_change_nothing(data):
    now = [0.0]
    _, routers, news = pair(now)
    news[0].hear(data)
    assert set(counts(routers[0], 0.0).values()) == {0}


async def test_workers_hear_each_other_by_the_process_that_watches_them(tmp_path):
    hub = Hub(tmp_path / "budgets.json")
    server = await hub.listen(tmp_path / "hub")
    channels = [HubNotes(tmp_path / "hub") for _ in range(3)]
    streams = [channel.messages() for channel in channels]
    waiting = [asyncio.create_task(anext(stream)) for stream in streams]
    async with asyncio.timeout(10):
        while len(hub._listeners) < 3:  # noqa: ASYNC110 - the server's own doing
            await asyncio.sleep(0.01)
        await channels[0].send(b"one")
        assert [await task for task in waiting[1:]] == [b"one", b"one"]
        await channels[1].send(b"two")
        assert await waiting[0] == b"two"
    for stream in streams:
        await stream.aclose()
    server.close()
    await hub.close()
