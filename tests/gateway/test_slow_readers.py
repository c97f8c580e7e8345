"""Clients that read slowly or not at all: the engine waits, memory stays bounded, and nobody is blamed for it."""

import asyncio
import time

import pytest

from gateway.passage import End
from tests.gateway.guarded import STREAM_HEAD, FakePassage, ask, event, guarding, piece, whole_answer
from tests.gateway.guarded import FakeEngine as ScriptedEngine
from tests.gateway.leaving import Client, HoldingEngine, held, is_in_use, publish, request, resident_bytes

MEGABYTE = 1024 * 1024
MOST_ON_THE_WAY = 24 * MEGABYTE
"""Buffers of both processes and of the kernel at every hop, which grow by themselves."""
MOST_MEMORY = 24 * MEGABYTE


@pytest.fixture
def engine(gateway, world, until):
    made = HoldingEngine(flood_bytes=200 * MEGABYTE)
    gateway.servers.start(made)
    publish(gateway, world, made.address)
    until(lambda: is_in_use(gateway), "the routes")
    yield made
    until(lambda: held(gateway) == 0, "nothing is held")


def stands_still(engine, until):
    """Returns when nothing has moved for a while."""
    seen = [(0, time.monotonic())]

    def is_still():
        if engine.flooded_bytes != seen[-1][0]:
            seen.append((engine.flooded_bytes, time.monotonic()))
        return engine.flooded_bytes and time.monotonic() - seen[-1][1] > 0.3

    until(is_still, "the engine is held back")


@pytest.mark.parametrize("model", ["guarded", "unguarded", "filtered"])
def test_a_client_that_does_not_read_costs_bounded_memory_and_frees_the_engine_when_it_leaves(
    gateway, engine, world, until, model
):
    processes = (gateway.decision.pid, gateway.envoy.pid)
    before = [resident_bytes(pid) for pid in processes]
    clients = [Client(gateway, receive_bytes=4096).send(request(world.acme_key, model)) for _ in range(3)]
    stands_still(engine, until)
    assert engine.flooded_bytes < len(clients) * MOST_ON_THE_WAY
    after = [resident_bytes(pid) for pid in processes]
    assert all(now - then < MOST_MEMORY for now, then in zip(after, before, strict=True))
    others = Client(gateway).send(request(world.acme_key, "none"))
    assert others.status == 404  # the gateway serves others meanwhile
    others.leave()
    started = time.monotonic()
    for client in clients:
        client.leave()
    until(lambda: len(engine.left_at) == len(clients), "the engine sees it")
    assert max(engine.left_at) - started < 0.5


async def test_an_engine_that_is_held_back_by_its_client_is_not_late():
    sent = 0

    async def script(_, writer):
        nonlocal sent
        writer.write(STREAM_HEAD)
        for _ in range(200):
            writer.write(piece(event("x" * 100_000)))
            await writer.drain()
            sent += 1
        writer.write(b"0\r\n\r\n")

    async with ScriptedEngine(script) as engine:
        passage = FakePassage((engine.address,), idle_seconds=0.1)
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            seen, since = -1, 0.0
            while sent != seen or time.monotonic() - since < 0.5:  # five times as long as an engine may be silent
                since = since if sent == seen else time.monotonic()
                seen = sent
                await asyncio.sleep(0.01)
            assert sent < 200
            status, body, is_whole = await whole_answer(reader)
    assert (status, is_whole) == (200, True)
    assert body.count(b"data: ") == 200
    assert b"engine" not in body
    assert [ending.end for ending in passage.endings] == [End.WHOLE]
