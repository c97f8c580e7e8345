"""Peers that leave in the very moment: nothing that was admitted is forgotten, and no engine goes on for nobody."""

import asyncio

from gateway.engine_connections import EngineConnections
from gateway.exchange import Exchange, HttpResponse
from gateway.ext_authz import TICKET_HEADER
from gateway.guard import Guard, GuardSettings
from gateway.http_protocol import UNREAD_SECONDS, HttpServer
from gateway.passage import End
from tests.gateway.guarded import FakeEngine, FakePassage, OneTicket, until, wait_for_end

ASKED = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n%b: t\r\ncontent-length: 2\r\n\r\n{}" % TICKET_HEADER.encode()
)


class FakeTransport(asyncio.Transport):
    """Takes everything."""

    def __init__(self):
        super().__init__()
        self.written = b""
        self.is_closed = False

    def write(self, data):
        self.written += data

    def close(self):
        self.is_closed = True

    def abort(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed


def connected(server):
    protocol, transport = server.connection(), FakeTransport()
    protocol.connection_made(transport)
    return protocol, transport


async def test_who_leaves_before_its_relay_has_begun_frees_the_engine():
    async with FakeEngine(wait_for_end) as engine:
        connections = EngineConnections()
        first, second = FakePassage((engine.address,)), FakePassage((engine.address,), gate=asyncio.Event())
        for passage in (first, second):
            guard = Guard(OneTicket(passage), connections, GuardSettings(60.0))
            protocol, _ = connected(guard.server(lambda _: HttpResponse(500)))
            protocol.data_received(ASKED)
            protocol.connection_lost(None)
            assert guard.running == 1
            await until(lambda guard=guard: not guard.running)
            assert [ending.end for ending in passage.endings] == [End.CLIENT_LEFT]
        connections.close()


async def test_a_request_that_is_cut_short_gives_its_ticket_back():
    tickets = OneTicket(FakePassage(()))
    guard = Guard(tickets, EngineConnections(), GuardSettings(60.0))
    protocol, _ = connected(guard.server(lambda _: HttpResponse(500)))
    protocol.data_received(ASKED[:-1])
    protocol.connection_lost(None)
    assert tickets.given_up == ["t"]


class Told:
    """A server whose answers want to be read."""

    def __init__(self, *, is_later=False):
        self.unread = 0
        self.exchange = None
        self.is_later = is_later
        self.server = HttpServer(self.answer, max_body_bytes=9, on_failure=lambda _: HttpResponse(500))

    def answer(self, _):
        return self.take if self.is_later else self.response()

    def take(self, exchange: Exchange):
        self.exchange = exchange

    def response(self):
        return HttpResponse(200, on_unread=self.count)

    def count(self):
        self.unread += 1


async def test_an_answer_whose_peer_leaves_at_once_is_unread():
    told = Told()
    protocol, _ = connected(told.server)
    protocol.data_received(ASKED)
    assert told.unread == 0
    protocol.connection_lost(ConnectionResetError())
    assert told.unread == 1


async def test_an_answer_that_comes_after_its_peer_has_left_is_unread():
    told = Told(is_later=True)
    protocol, _ = connected(told.server)
    protocol.data_received(ASKED)
    protocol.connection_lost(None)
    assert told.unread == 0
    told.exchange.answer(told.response())
    assert told.unread == 1


async def test_an_answer_is_read_where_the_peer_asks_again_or_stays_or_we_close(monkeypatch):
    told = Told()
    protocol, _ = connected(told.server)
    protocol.data_received(ASKED)
    protocol.data_received(ASKED[:30])  # the next question
    protocol.connection_lost(None)
    stayed, _ = connected(told.server)
    stayed.data_received(ASKED)
    monkeypatch.setattr("gateway.http_protocol.UNREAD_SECONDS", -UNREAD_SECONDS)  # they are over
    stayed.connection_lost(None)
    monkeypatch.undo()
    closed, transport = connected(told.server)
    closed.data_received(ASKED)
    await told.server.drain(0)
    assert transport.is_closed
    closed.connection_lost(None)
    assert told.unread == 0
