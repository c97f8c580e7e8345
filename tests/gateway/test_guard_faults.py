"""The guard when what it tells of a request's end fails: the fault is logged, and only that request is hit."""

import asyncio
import gc

import pytest
from structlog.testing import capture_logs

from gateway.engine_connections import EngineConnections
from gateway.exchange import HttpResponse
from gateway.guard import Guard, GuardSettings
from gateway.passage import End
from gateway.refusals import Reason
from gateway.start import log_unhandled
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

pytestmark = pytest.mark.asyncio


class EndsBadly(FakePassage):
    """Whoever settles it fails."""

    def end(self, ending):
        super().end(ending)
        raise RuntimeError("secret words of a prompt")


class BeginsBadly(FakePassage):
    """Whoever counts its first byte fails."""

    def began(self):
        super().began()
        raise RuntimeError("secret words of a prompt")


async def whole_stream(_, writer):
    writer.write(STREAM_HEAD + piece(event("a")) + LAST_PIECE)


@pytest.mark.parametrize("kind", [EndsBadly, BeginsBadly])
async def test_a_fault_at_the_last_byte_is_logged_by_its_kind_and_place_alone(kind):
    async with FakeEngine(whole_stream) as engine:
        passage = kind((engine.address,))
        with capture_logs() as logs:
            async with guarding(passage) as (guard, reader, writer):
                ask(writer)
                assert await whole_answer(reader) == (200, event("a"), True)
                await until(lambda: not guard.running)
    assert [(log["event"], log["error"]) for log in logs] == [("engine_answer.failed", "RuntimeError")]
    assert "secret" not in str(logs)
    assert len(passage.endings) == 1


async def test_what_nobody_handles_on_the_loop_is_logged_by_its_kind_and_place_alone():
    async def left_by_its_client(_, writer):
        writer.write(STREAM_HEAD + piece(event("a")))

    asyncio.get_running_loop().set_exception_handler(log_unhandled)
    async with FakeEngine(left_by_its_client) as engine:
        passage = EndsBadly((engine.address,))
        with capture_logs() as logs:
            async with guarding(passage) as (guard, reader, writer):
                ask(writer)
                await reader.readuntil(b"data: ")
                writer.transport.abort()
                await until(lambda: not guard.running)
            gc.collect()
    assert [(log["event"], log["error"]) for log in logs] == [("loop.unhandled", "RuntimeError")]
    assert any("relay.py" in place for place in logs[0]["where"])
    assert "secret" not in str(logs)


@pytest.mark.parametrize("waits", ["for_its_turn", "for_the_engine"])
async def test_who_is_stopped_before_the_first_byte_is_told_when_the_request_has_ended(waits):
    async with FakeEngine(wait_for_end) as engine:
        passage = FakePassage((engine.address,), gate=asyncio.Event() if waits == "for_its_turn" else None)
        async with guarding(passage) as (guard, reader, writer):
            ask(writer)
            await until(lambda: guard.running and (engine.requests or waits == "for_its_turn"))
            guard._stop()
            assert [ending.end for ending in passage.endings] == [End.FAILED]
            assert (await whole_answer(reader))[0] == 503
            await until(lambda: not guard.running)
    assert len(passage.endings) == 1


async def test_one_that_has_not_begun_to_run_is_stopped_all_the_same():
    async with FakeEngine(whole_stream) as engine:
        passage = FakePassage((engine.address,))
        async with guarding(passage) as (guard, reader, writer):
            taken = guard._passages.take
            guard._passages.take = lambda ticket: (asyncio.get_running_loop().call_soon(guard._stop), taken(ticket))[1]
            ask(writer)
            assert (await whole_answer(reader))[0] == 503
            await until(lambda: not guard.running)
    assert engine.requests == []
    assert [ending.end for ending in passage.endings] == [End.FAILED]


async def test_an_engine_whose_answer_met_a_fault_is_not_asked_over_the_same_connection():
    clients = []

    async def noted(reader, writer):
        clients.append(writer.get_extra_info("peername"))
        await whole_stream(reader, writer)

    async with FakeEngine(noted) as engine:
        with capture_logs():
            async with guarding(EndsBadly((engine.address,))) as (guard, reader, writer):
                for _ in range(2):
                    ask(writer)
                    assert (await whole_answer(reader))[0] == 200
                    await until(lambda: not guard.running)
                    guard._passages.passage = FakePassage((engine.address,))
                guard._passages.passage = None
    assert len(set(clients)) == 2


async def test_one_that_can_not_be_stopped_leaves_the_others_their_last_words():
    async def endless(reader, writer):
        writer.write(STREAM_HEAD + piece(event("a")))
        await wait_for_end(reader, writer)

    async with FakeEngine(endless) as engine:
        engines, tickets = EngineConnections(), OneTicket(None)
        server = Guard(tickets, engines, GuardSettings()).server(lambda _: HttpResponse(500))
        listener = await asyncio.get_running_loop().create_server(server.connection, "127.0.0.1", 0)
        passages = [EndsBadly((engine.address,)), FakePassage((engine.address,)), EndsBadly((engine.address,))]
        answers, writers = [], []
        for passage in passages:
            reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
            tickets.passage = passage
            ask(writer)
            answers.append(asyncio.create_task(whole_answer(reader)))
            writers.append(writer)
            await until(lambda passage=passage: "began" in passage.sent)
        listener.close()
        with capture_logs() as logs:
            await server.drain(0.01)
        for answer in answers:
            _, body, is_whole = await answer
            assert is_whole
            assert Reason.INTERNAL.value.encode() in body
        for writer in writers:
            writer.close()
        engines.close()
    assert [log["event"] for log in logs] == ["relay.not_stopped", "relay.not_stopped"]
    assert all(len(passage.endings) == 1 for passage in passages)
