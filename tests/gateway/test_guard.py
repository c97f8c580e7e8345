"""The stream guard: bytes pass as they are, nothing ends in silence, and a client that leaves is seen."""

import asyncio
import json
from collections.abc import Callable

import pytest

from gateway.engine_connections import EngineConnections
from gateway.exchange import HttpResponse
from gateway.guard import Guard, GuardSettings
from gateway.passage import End
from gateway.refusals import Reason, refuse
from gateway.token_usage import TokenUsage
from tests.gateway.guarded import (
    LAST_PIECE,
    STREAM_HEAD,
    FakeEngine,
    FakePassage,
    OneTicket,
    ask,
    event,
    guarding,
    piece,
    until,
    wait_for_end,
    whole_answer,
)

USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13, "prompt_tokens_details": {"cached_tokens": 8}}
USAGE_EVENT = b"data: " + json.dumps({"choices": [], "usage": USAGE}).encode() + b"\n\n"
DONE = b"data: [DONE]\n\n"
pytestmark = pytest.mark.asyncio


def says(*parts: bytes, ends: bool = True):
    """A script: a stream of these parts."""

    async def script(_, writer):
        writer.write(STREAM_HEAD)
        for part in parts:
            writer.write(piece(part))
            await writer.drain()
            await asyncio.sleep(0)
        if ends:
            writer.write(LAST_PIECE)
        else:
            writer.transport.abort()
            raise ConnectionResetError
        await writer.drain()

    return script


def raw(data: bytes):
    """A script: these bytes, whatever they are."""

    async def script(_, writer):
        writer.write(data)
        await writer.drain()

    return script


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_the_bytes_of_a_stream_pass_as_they_are_and_its_usage_is_read(size: int) -> None:
    stream = event("a") + b": comment\n\n" + event("b") + USAGE_EVENT + DONE
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    async with FakeEngine(says(*parts)) as engine:
        passage = FakePassage((engine.address,))
        async with guarding(passage) as (_, reader, writer):
            ask(writer, body=b'{"x": 1}')
            assert await whole_answer(reader) == (200, stream, True)
    (ending,) = passage.endings
    assert (ending.end, ending.usage, ending.status) == (End.WHOLE, TokenUsage(9, 8, 4), 200)
    assert passage.sent == [engine.address, "began"]
    assert engine.requests[0].endswith(b'\r\n\r\n{"x": 1}')
    assert b"x-request-id: r" in engine.requests[0]
    assert b"x-gateway" not in engine.requests[0]


@pytest.mark.parametrize("size", [1, 7, 10_000])
async def test_usage_that_was_asked_for_in_the_clients_place_is_taken_out_and_nothing_else(size: int) -> None:
    told = b'data: {"choices":[{"delta":{"content":"\\"usage\\":null"}}],"usage":null}\n\n'
    stream = event("a") + told + USAGE_EVENT + DONE
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    async with FakeEngine(says(*parts)) as engine:
        passage = FakePassage((engine.address,), is_usage_injected=True)
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            expected = event("a") + told.replace(b',"usage":null}', b"}") + DONE
            assert await whole_answer(reader) == (200, expected, True)
    (ending,) = passage.endings
    assert (ending.usage, ending.events) == (TokenUsage(9, 8, 4), 2)


async def test_a_request_without_its_ticket_goes_nowhere_and_a_ticket_counts_once() -> None:
    async with FakeEngine(says(DONE)) as engine:
        passage = FakePassage((engine.address,))
        async with guarding(passage) as (_, reader, writer):
            ask(writer, ticket="other")
            assert (await whole_answer(reader))[0] == 403
            ask(writer)
            assert (await whole_answer(reader))[0] == 200
            ask(writer)
            assert (await whole_answer(reader))[0] == 403
        assert len(engine.requests) == 1


async def test_an_engine_that_is_away_busy_or_breaks_off_before_its_first_byte_leaves_it_to_the_next() -> None:
    busy = raw(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}")
    async with FakeEngine(busy) as first, FakeEngine(says(ends=False)) as second, FakeEngine(says(DONE)) as third:
        passage = FakePassage(("127.0.0.1:1", first.address, second.address, third.address))
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            assert await whole_answer(reader) == (200, DONE, True)
    assert passage.sent == [first.address, second.address, third.address, "began"]
    assert [ending.end for ending in passage.endings] == [End.WHOLE]


async def test_an_engine_that_breaks_off_ends_the_stream_with_an_error() -> None:
    async with FakeEngine(says(event("a"), b"data: {half", ends=False)) as engine, FakeEngine(says(DONE)) as other:
        passage = FakePassage((engine.address, other.address))
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            status, body, is_whole = await whole_answer(reader)
    assert (status, is_whole) == (200, True)
    last = body.split(b"\n\n")[-2]
    assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == Reason.ENGINE_LOST.value
    assert [(ending.end, ending.events) for ending in passage.endings] == [(End.ENGINE_LOST, 1)]
    assert other.requests == []


async def test_no_engine_at_all_is_an_answer() -> None:
    passage = FakePassage(("127.0.0.1:1",))
    async with guarding(passage) as (_, reader, writer):
        ask(writer)
        status, body, _ = await whole_answer(reader)
    assert (status, json.loads(body)["error"]["code"]) == (503, "no_endpoint")
    assert [ending.end for ending in passage.endings] == [End.NO_ENGINE]


async def test_a_fault_of_our_own_is_an_error_and_frees_the_engine() -> None:
    class Faulty(FakePassage):
        def began(self) -> None:
            raise RuntimeError("the-secret")

    async with FakeEngine(says(event("a"), DONE)) as engine:
        passage = Faulty((engine.address,))
        async with guarding(passage) as (guard, reader, writer):
            ask(writer)
            _, body, is_whole = await whole_answer(reader)
            await until(lambda: not guard.running)
    assert is_whole
    assert b"the-secret" not in body
    assert [ending.end for ending in passage.endings] == [End.FAILED]


async def test_an_engines_own_error_is_the_answer() -> None:
    told = b'{"error":{"message":"no","type":"BadRequestError"}}'
    head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(told)}\r\n\r\n"
    async with (
        FakeEngine(raw(head.encode() + told)) as engine,
        guarding(FakePassage((engine.address,))) as (_, reader, writer),
    ):
        ask(writer)
        assert await whole_answer(reader) == (400, told, True)


async def test_a_client_that_leaves_frees_the_engine() -> None:
    async with FakeEngine(wait_for_end) as engine:
        passage = FakePassage((engine.address,))
        async with guarding(passage) as (guard, _, writer):
            ask(writer)
            await until(lambda: engine.requests)
            writer.transport.abort()
            await until(engine.gone.is_set)
            await until(lambda: not guard.running)
    assert [ending.end for ending in passage.endings] == [End.CLIENT_LEFT]


async def test_a_client_that_leaves_while_it_waits_asks_nobody() -> None:
    passage = FakePassage(("127.0.0.1:1",), gate=asyncio.Event())
    async with guarding(passage) as (guard, _, writer):
        ask(writer)
        await until(lambda: guard.running)
        writer.transport.abort()
        await until(lambda: not guard.running)
    assert [ending.end for ending in passage.endings] == [End.CLIENT_LEFT]
    assert passage.sent == []


async def test_a_stream_that_outlasts_a_stopping_gateway_ends_with_an_error_and_frees_the_engine() -> None:
    async def script(reader, writer):
        writer.write(STREAM_HEAD + piece(event("a")))
        await wait_for_end(reader, writer)

    async with FakeEngine(script) as engine:
        passage, engines = FakePassage((engine.address,)), EngineConnections()
        server = Guard(OneTicket(passage), engines, GuardSettings()).server(lambda _: HttpResponse(500))
        listener = await asyncio.get_running_loop().create_server(server.connection, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        ask(writer)
        answer = asyncio.create_task(whole_answer(reader))
        await until(lambda: "began" in passage.sent)
        listener.close()
        await server.drain(0.01)
        _, body, is_whole = await answer
        await until(engine.gone.is_set)
        writer.close()
        engines.close()
    assert is_whole
    assert json.loads(body.split(b"\n\n")[-2].removeprefix(b"data: "))["error"]["code"] == Reason.INTERNAL.value
    assert [(ending.end, ending.events) for ending in passage.endings] == [(End.FAILED, 1)]


async def test_comments_keep_a_waiting_stream_alive_and_a_refusal_is_then_an_event() -> None:
    refused = refuse(Reason.TOO_MANY_REQUESTS, "Waited too long.")
    passage = FakePassage((), refused=refused, gate=asyncio.Event())
    async with guarding(passage, keep_alive_seconds=0.01) as (_, reader, writer):
        ask(writer)
        async with asyncio.timeout(5):
            await reader.readuntil(b": keep-alive\n\n")
            passage.gate.set()
            rest = await reader.readuntil(b"0\r\n\r\n")
    (data,) = (line for line in rest.splitlines() if line.startswith(b"data: "))
    assert json.loads(data.removeprefix(b"data: "))["error"]["message"] == "Waited too long."
    assert [ending.end for ending in passage.endings] == [End.REFUSED]


async def test_a_refusal_before_any_comment_has_its_own_status() -> None:
    passage = FakePassage((), refused=refuse(Reason.TOO_MANY_REQUESTS, "No.", headers=(("retry-after", "3"),)))
    async with guarding(passage) as (_, reader, writer):
        ask(writer)
        assert (await whole_answer(reader))[0] == 429


async def test_no_comment_splits_an_event() -> None:
    async def script(reader, writer):
        writer.write(STREAM_HEAD + piece(b'data: {"choices":'))
        await asyncio.sleep(0.1)
        writer.write(piece(b"[]}\n\n") + LAST_PIECE)

    async with (
        FakeEngine(script) as engine,
        guarding(FakePassage((engine.address,)), keep_alive_seconds=0.01) as (_, reader, writer),
    ):
        ask(writer)
        _, body, _ = await whole_answer(reader)
    assert b'data: {"choices":[]}\n\n' in body


async def test_an_engine_that_says_nothing_is_late() -> None:
    async with FakeEngine(wait_for_end) as engine:
        passage = FakePassage((engine.address,), first_byte_seconds=0.05)
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            status, body, _ = await whole_answer(reader)
            await until(engine.gone.is_set)
    assert (status, json.loads(body)["error"]["code"]) == (504, Reason.ENGINE_LATE.value)
    assert [ending.end for ending in passage.endings] == [End.ENGINE_LATE]


async def test_an_engine_that_falls_silent_is_late() -> None:
    async def script(reader, writer):
        writer.write(STREAM_HEAD + piece(event("a")))
        await wait_for_end(reader, writer)

    async with FakeEngine(script) as engine:
        passage = FakePassage((engine.address,), idle_seconds=0.05)
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            _, body, is_whole = await whole_answer(reader)
    assert is_whole
    assert Reason.ENGINE_LATE.value.encode() in body
    assert [(ending.end, ending.events) for ending in passage.endings] == [(End.ENGINE_LATE, 1)]


async def test_a_slow_reader_holds_the_engine_back() -> None:
    sent = 0

    async def script(_, writer):
        nonlocal sent
        writer.write(STREAM_HEAD)
        for _ in range(400):
            writer.write(piece(event("x" * 100_000)))
            await writer.drain()
            sent += 1
        writer.write(LAST_PIECE)

    async with FakeEngine(script) as engine, guarding(FakePassage((engine.address,))) as (_, reader, writer):
        ask(writer)
        seen = -1
        async with asyncio.timeout(10):
            while sent != seen or not sent:  # until nothing moves any more
                seen = sent
                await asyncio.sleep(0.2)
        assert sent < 300
        assert len((await whole_answer(reader))[1]) > 400 * 100_000


async def test_connections_to_an_engine_are_used_again() -> None:
    async with FakeEngine(says(DONE)) as engine:
        passages = [FakePassage((engine.address,)) for _ in range(2)]
        async with guarding(passages[0]) as (guard, reader, writer):
            ask(writer)
            await whole_answer(reader)
            guard._passages.passage = passages[1]
            ask(writer)
            await whole_answer(reader)
            assert len(engine.requests) == 2
            assert not engine.gone.is_set()


async def test_a_connection_with_an_answer_too_many_serves_nobody_else() -> None:
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
    engine = FakeEngine(raw(whole + whole))
    async with engine, guarding(FakePassage((engine.address,))) as (_, reader, writer):
        ask(writer)
        assert await whole_answer(reader) == (200, b"{}", True)
        async with asyncio.timeout(5):
            await engine.gone.wait()


@pytest.mark.parametrize(
    "script",
    [
        says(event("a"), event("b"), USAGE_EVENT, DONE),
        says(event("a"), ends=False),
        raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
        raw(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}"),
    ],
    ids=["a stream", "a stream that breaks off", "a whole answer", "an error"],
)
async def test_a_request_that_is_over_leaves_nothing_to_the_collector(
    script, left_by_cycles: Callable[[], set[str]]
) -> None:
    async with FakeEngine(script) as engine:
        passage = FakePassage((engine.address,))
        async with guarding(passage) as (_, reader, writer):
            ask(writer)
            await whole_answer(reader)
            await until(lambda: passage.endings)
            await asyncio.sleep(0)
            assert not left_by_cycles() & {"Relay", "Exchange", "Attempt", "Silence", "HttpRequest", "Outlet"}
