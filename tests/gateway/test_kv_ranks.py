"""Engines with several data-parallel ranks: each rank publishes at ports of its own, and all of them are heard."""

import asyncio
import os
import time
from contextlib import asynccontextmanager
from random import Random

import pytest
import zmq
import zmq.asyncio
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewaySnapshot
from gateway.affinity import prompt_blocks
from gateway.index import index_of
from gateway.kv_metrics import KvMetrics
from gateway.kv_sockets import Publisher
from gateway.kv_subscriber import KvSubscriber, sources
from gateway.rank_blocks import RankBlocks
from gateway.router import Router, RoutingRequest
from tests.gateway.kv_publisher import SIZE, KvPublisher, removed, stored

ADDRESS = "127.0.0.1:9001"
TOKENS = list(range(1, 13))
OTHERS = list(range(101, 113))
CLEARED = {"type": "AllBlocksCleared"}
RANKS = 2


class Tables:
    """What the subscriber looks at."""

    def __init__(self, template, ranks):
        self.index = index_with(template, ranks)


def index_with(template, ranks, address=ADDRESS):
    endpoint = GatewayEndpoint(address=address)
    arm = GatewayArm(
        deployment="chat", identity="f" * 32, engine="vllm", endpoints=(endpoint,), kv_events=template, kv_ranks=ranks
    )
    return index_of(GatewaySnapshot(routes=(GatewayRoute(model="m", tenants=("acme",), arms=(arm,)),)))


def engine(context):
    """An engine with a publisher for each rank, at neighbouring ports, and the first of these ports."""
    for first in range(20_000 + os.getpid() % 1000 * 2 * RANKS, 32_000, 2 * RANKS):
        made = []
        try:
            places = [(first + rank, first + RANKS + rank) for rank in range(RANKS)]
            made.extend(KvPublisher(context, at=place, rank=rank) for rank, place in enumerate(places))
        except zmq.ZMQError:
            for publisher in made:
                publisher.close()
            continue
        return first, made
    raise AssertionError("no neighbouring ports are free")


class Ranked:
    """One engine of two ranks, and a subscriber that hears it."""

    def __init__(self, publishers, router, registry, subscriber):
        self.publishers, self.router, self.registry, self.subscriber = publishers, router, registry, subscriber

    def cached(self, tokens):
        prompt = prompt_blocks({"prompt": [*tokens, 0]}, model="m", block_tokens=SIZE)
        request = RoutingRequest(prompt.blocks, prompt.block_tokens, prompt.prompt_tokens)
        chance = Random(0)  # noqa: S311
        found = self.router.choose(request, [GatewayEndpoint(address=ADDRESS)], time.time(), chance)
        return found.candidates[0].cached_tokens

    def count(self, kind):
        lines = generate_latest(self.registry).decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if f'="{kind}"' in line and "_total" in line)

    async def say(self, rank, *events):
        """A message of one rank, once it has been heard."""
        kinds = {"BlockStored": "stored", "BlockRemoved": "removed", "AllBlocksCleared": "cleared"}
        before = {kind: self.count(kind) for kind in kinds.values()}
        await self.publishers[rank].publish(*events)
        for event in events:
            before[kinds[event["type"]]] += 1
        await until(lambda: all(self.count(kind) == number for kind, number in before.items()), f"rank {rank}")


async def until(condition, what, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        await asyncio.sleep(0.01)


@asynccontextmanager
async def listening(before=()):
    """``before`` = what the ranks said before the subscriber came."""
    context = zmq.asyncio.Context()
    first, publishers = engine(context)
    for rank, events in before:
        publishers[rank].record(*events)
    router, registry = Router(), CollectorRegistry()
    tables = Tables(f"tcp://{{host}}:{first},tcp://{{host}}:{first + RANKS}", RANKS)
    subscriber = KvSubscriber(tables, router, KvMetrics(registry), time.time)
    tasks = [asyncio.create_task(subscriber.run())]
    tasks += [asyncio.create_task(publisher.answer_replays()) for publisher in publishers]
    heard = Ranked(publishers, router, registry, subscriber)
    try:
        async with asyncio.timeout(10):
            for publisher in publishers:
                await publisher.subscribed()
                await until(lambda heard_by=publisher: heard_by.asked, "it has caught up")
        yield heard
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for publisher in publishers:
            publisher.close()
        context.destroy(linger=0)


async def test_every_rank_is_heard_what_it_said_before_too():
    async with listening(before=[(1, [stored([7, 8, 9], OTHERS)])]) as heard:
        await until(lambda: heard.cached(OTHERS) == 12, "what rank 1 said before")
        await heard.say(0, stored([1, 2, 3], TOKENS))
        assert heard.cached(TOKENS) == heard.cached(OTHERS) == 12


async def test_a_block_is_held_until_the_last_rank_gives_it_up():
    async with listening() as heard:
        for rank in range(RANKS):
            await heard.say(rank, stored([1, 2, 3], TOKENS))
        await heard.say(0, removed([2, 3]))
        assert heard.cached(TOKENS) == 12
        await heard.say(1, removed([3]))
        assert heard.cached(TOKENS) == 8


async def test_a_rank_that_is_cleared_takes_away_what_it_alone_held():
    async with listening() as heard:
        await heard.say(0, stored([1, 2, 3], TOKENS))
        await heard.say(1, stored([7, 8, 9], OTHERS))
        await heard.say(0, CLEARED)
        assert (heard.cached(TOKENS), heard.cached(OTHERS)) == (0, 12)
        await heard.say(1, CLEARED)
        assert heard.cached(OTHERS) == 0


async def test_a_restart_makes_all_ranks_new():
    async with listening() as heard:
        for rank in range(RANKS):
            await heard.say(rank, stored([1, 2, 3], TOKENS))
        for publisher in heard.publishers:
            publisher.restart()
        heard.router.restarted(ADDRESS)
        heard.subscriber.restarted(ADDRESS)
        assert heard.cached(TOKENS) == 0
        await heard.say(1, stored([4, 5, 6], TOKENS))
        await heard.say(1, removed([6]))
        assert heard.cached(TOKENS) == 8


# --- Where they publish ---
@given(st.integers(1, 65_000), st.integers(0, 500))
def test_each_rank_has_the_next_ports(port, rank):
    found = Publisher.of(f"tcp://{{host}}:{port},tcp://{{host}}:{port + 1}", "10.0.0.1:8000", rank)
    assert found == (f"tcp://10.0.0.1:{port + rank}", f"tcp://10.0.0.1:{port + 1 + rank}")


def test_sources_are_the_ranks_of_the_snapshot_and_one_where_it_says_none():
    found = sources(index_with("tcp://{host}:5557,tcp://{host}:5657", 3))
    assert [(item.rank, item.publisher.events.rpartition(":")[2]) for item in found] == [
        (0, "5557"),
        (1, "5558"),
        (2, "5559"),
    ]
    assert len(sources(index_with("ipc:///run/kv-{port}.sock", 3))) == 1


@pytest.mark.parametrize(("template", "count"), [("tcp://{host}:65535", 1), ("tcp://{host}:99999", 0)])
def test_ports_that_can_not_be_are_left_out(template, count):
    assert len(sources(index_with(template, 2))) == count


# --- What they hold together ---
@given(st.lists(st.tuples(st.sampled_from(["store", "remove", "clear"]), st.integers(0, 2), st.integers(0, 5))))
def test_a_block_is_gone_when_no_rank_holds_it(steps):
    ranks, held = RankBlocks(100), [set() for _ in range(3)]
    for step, rank, block in steps:
        before = set().union(*held)
        if step == "store":
            ranks.store(rank, [block])
            held[rank].add(block)
            continue
        gone = ranks.remove(rank, [block]) if step == "remove" else ranks.clear(rank)
        held[rank] = held[rank] - {block} if step == "remove" else set()
        assert set(gone) & before == before - set().union(*held)
        assert len(ranks) == len(set().union(*held))


def test_the_memory_for_ranks_is_bounded():
    ranks = RankBlocks(3)
    ranks.store(0, range(10))
    assert len(ranks) == 3
    assert ranks.remove(1, [0]) == (0,)
