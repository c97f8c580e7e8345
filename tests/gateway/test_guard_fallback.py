"""The guard when engines fail: the next engine, the next model, and never after the first byte."""

import asyncio
import json
import time

import pytest

from gateway.passage import End
from gateway.refusals import Reason, refuse
from tests.gateway.guarded import (
    LAST_PIECE,
    STREAM_HEAD,
    FakeEngine,
    FakePassage,
    ask,
    event,
    guarding,
    piece,
    wait_for_end,
    whole_answer,
)

DONE = b"data: [DONE]\n\n"
pytestmark = pytest.mark.asyncio


def says(data, *, ends=True):
    async def script(_, writer):
        writer.write(data)
        await writer.drain()
        if not ends:
            writer.transport.abort()
            raise ConnectionResetError

    return script


def status(number, body=b"{}", more=""):
    return says(f"HTTP/1.1 {number} X\r\n{more}content-length: {len(body)}\r\n\r\n".encode() + body)


STREAM = says(STREAM_HEAD + piece(DONE) + b"0\r\n\r\n")
BREAKS_OFF = says(STREAM_HEAD, ends=False)


class Renamed(FakePassage):
    """Says which model serves by how often it fell back."""

    def fall_back(self):
        went_on = super().fall_back()
        self.model = f"{self.model}-stand-in" if went_on else self.model
        return went_on


async def head_of_answer(passage):
    async with guarding(passage) as (_, reader, writer):
        ask(writer)
        async with asyncio.timeout(10):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    return head


@pytest.mark.parametrize(
    "failing", [BREAKS_OFF, status(503), status(502), status(504)], ids=["lost", "503", "502", "504"]
)
async def test_when_every_engine_of_a_model_fails_the_next_one_serves_and_is_named(failing):
    async with FakeEngine(failing) as one, FakeEngine(failing) as two, FakeEngine(STREAM) as other:
        passage = Renamed((one.address, two.address, "127.0.0.1:1"), fallbacks=[(other.address,)])
        head = await head_of_answer(passage)
    assert head.startswith("http/1.1 200")
    assert "x-served-model: served-stand-in\r\n" in head
    assert passage.sent == [one.address, two.address, other.address, "began"]
    assert [address for address, _ in passage.failures] == [one.address, two.address, "127.0.0.1:1"]
    assert passage.well == [other.address]
    assert [ending.end for ending in passage.endings] == [End.WHOLE]


async def test_the_model_that_was_asked_for_is_named_as_well():
    async with FakeEngine(STREAM) as engine:
        assert "x-served-model: served\r\n" in await head_of_answer(FakePassage((engine.address,)))


async def test_a_header_of_the_engines_can_not_claim_another_model():
    async with FakeEngine(status(200, more="x-served-model: lies\r\nx-gateway-endpoint: lies\r\n")) as engine:
        head = await head_of_answer(FakePassage((engine.address,)))
    assert "lies" not in head


async def test_an_engine_that_is_late_leaves_it_to_another_model_not_to_its_neighbour():
    async with FakeEngine(wait_for_end) as slow, FakeEngine(STREAM) as neighbour, FakeEngine(STREAM) as other:
        passage = FakePassage((slow.address, neighbour.address), fallbacks=[(other.address,)], first_byte_seconds=0.05)
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            assert await whole_answer(reader) == (200, DONE, True)
        async with asyncio.timeout(5):
            await slow.gone.wait()
    assert neighbour.requests == []
    assert len(other.requests) == 1


@pytest.mark.parametrize("ends", [True, False], ids=["whole", "first_byte"])
async def test_a_first_byte_in_the_turn_in_which_its_time_is_up_leaves_nothing_to_another_model(ends):
    async def just_in_time(_, writer):
        writer.write(STREAM_HEAD + piece(event("a")) + (LAST_PIECE if ends else b""))
        time.sleep(0.2)  # noqa: ASYNC251 the loop has the bytes and the deadline to see at once after it
        if not ends:
            await asyncio.sleep(0.05)
            writer.write(LAST_PIECE)

    async with FakeEngine(just_in_time) as engine, FakeEngine(STREAM) as other:
        passage = FakePassage((engine.address,), fallbacks=[(other.address,)], first_byte_seconds=0.1)
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            assert await whole_answer(reader) == (200, event("a"), True)
    assert other.requests == []
    assert len(passage.fallbacks) == 1
    assert (passage.failures, passage.well) == ([], [engine.address])
    assert [ending.end for ending in passage.endings] == [End.WHOLE]


async def test_after_the_first_byte_there_is_no_other_model():
    async with FakeEngine(says(STREAM_HEAD + piece(event("a")), ends=False)) as engine, FakeEngine(STREAM) as other:
        passage = FakePassage((engine.address,), fallbacks=[(other.address,)])
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            _, body, is_whole = await whole_answer(reader)
    assert is_whole
    assert Reason.ENGINE_LOST.value.encode() in body
    assert other.requests == []
    assert len(passage.fallbacks) == 1


async def test_when_the_whole_chain_fails_the_client_is_told_why():
    async with FakeEngine(BREAKS_OFF) as one, FakeEngine(status(503)) as two:
        passage = FakePassage((one.address,), fallbacks=[(two.address,), ("127.0.0.1:1",)])
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            code, body, _ = await whole_answer(reader)
    assert (code, json.loads(body)["error"]["code"]) == (503, Reason.NO_ENDPOINT.value)
    assert passage.sent == [one.address, two.address]


@pytest.mark.parametrize(("reason", "goes_on"), [(Reason.NO_ENDPOINT, True), (Reason.QUEUE_FULL, False)])
async def test_engines_that_go_away_while_a_request_waits_are_a_reason_for_another_model_and_a_full_queue_is_none(
    reason, goes_on
):
    class Waiting(FakePassage):
        async def turn(self):
            return refuse(reason, "No.") if self.engines == ("gone",) else self.engines

    async with FakeEngine(STREAM) as other:
        passage = Waiting(("gone",), fallbacks=[(other.address,)])
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            code, _, _ = await whole_answer(reader)
    assert (code == 200) is goes_on
    assert [ending.end for ending in passage.endings] == [End.WHOLE if goes_on else End.REFUSED]


async def test_an_error_that_is_the_clients_own_is_not_asked_elsewhere():
    async with FakeEngine(status(400, b'{"a":1}')) as one, FakeEngine(STREAM) as two:
        passage = FakePassage((one.address, two.address), fallbacks=[(two.address,)])
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            assert (await whole_answer(reader))[:2] == (400, b'{"a":1}')
    assert two.requests == []
    assert passage.failures == []


async def test_an_engines_own_fault_is_passed_on_and_counts_against_it():
    """Asking the next one what has just broken this one could break them all."""
    async with FakeEngine(status(500, b"oops")) as one, FakeEngine(STREAM) as two:
        passage = FakePassage((one.address, two.address))
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            assert (await whole_answer(reader))[:2] == (500, b"oops")
    assert two.requests == []
    assert (passage.failures, passage.well) == ([(one.address, 0.0)], [])


async def test_an_engine_that_may_not_be_asked_is_passed_over():
    class Full(FakePassage):
        def may_ask(self, address):
            return address != self.engines[0]

    async with FakeEngine(STREAM) as full, FakeEngine(STREAM) as other:
        passage = Full((full.address, other.address))
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            assert (await whole_answer(reader))[0] == 200
    assert full.requests == []
    assert passage.failures == []


async def test_a_connection_that_was_closed_while_idle_is_made_anew():
    """The engine closes after its first answer, just as the next request is on its way."""
    answered = 0

    async def closes_late(reader, writer):
        nonlocal answered
        answered += 1
        if answered == 2:  # it has read the request, and was closing already
            writer.transport.abort()
            raise ConnectionResetError
        await STREAM(reader, writer)

    async with FakeEngine(closes_late) as engine:
        passages = [FakePassage((engine.address,)) for _ in range(2)]
        async with guarding(passages[0]) as (guard, reader, writer):
            ask(writer)
            await whole_answer(reader)
            guard._passages.passage = passages[1]
            ask(writer)
            assert await whole_answer(reader) == (200, DONE, True)
    assert answered == 3
    assert passages[1].failures == []
    assert passages[1].sent == [engine.address, engine.address, "began"]


async def test_a_connection_that_is_new_is_not_tried_twice():
    async with FakeEngine(says(b"", ends=False)) as engine:
        passage = FakePassage((engine.address,))
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            assert (await whole_answer(reader))[0] == 502
        assert len(engine.requests) == 1
    assert passage.failures == [(engine.address, 0.0)]
