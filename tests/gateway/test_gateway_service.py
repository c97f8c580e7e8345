"""The small HTTP server and the decision service on it: an answer to everything, and never a yes by accident."""

import asyncio
import contextlib
import json

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from gateway import http_protocol
from gateway.decision import DecisionCore
from gateway.exchange import HttpResponse
from gateway.ext_authz import UNAVAILABLE_ON_THE_WIRE
from gateway.http_protocol import HttpRequest, HttpServer
from gateway.index import index_of
from gateway.refusals import Reason, refuse
from gateway.server import DecisionService
from gateway.socket_tickets import SocketTickets
from gateway.telemetry import Telemetry, telemetry_page
from gateway.tickets import Tickets
from gateway.unguarded import Unguarded

CHAT = "/authorize/v1/chat/completions"


class BrokenCore(DecisionCore):
    """Raises with what it was asked, as the worst bug would."""

    def decide(self, request, now_unix_seconds):
        raise RuntimeError(f"{request.headers} {request.body!r} {request.target}")


def service(core=None):
    tickets, unguarded = Tickets(lambda: "ticket"), Unguarded(lambda: "unguarded-ticket", lambda: 1.0)
    return DecisionService(
        core or DecisionCore(),
        Telemetry(),
        tickets,
        unguarded,
        SocketTickets(lambda: "socket-ticket"),
        now_unix_seconds=lambda: 1.0,
        now_monotonic_seconds=lambda: 0.0,
    )


def serving(world):
    core = DecisionCore()
    core.replace(index_of(world.snapshot()), 0.0)
    return service(core)


def question(key, model="acme-chat", target=CHAT, **headers):
    body = json.dumps({"model": model, "messages": []}).encode()
    return HttpRequest("POST", target, {"authorization": f"Bearer {key}", **headers}, body)


@contextlib.asynccontextmanager
async def listening(server):
    listener = await asyncio.get_running_loop().create_server(server.connection, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
    try:
        yield reader, writer
    finally:
        writer.close()
        listener.close()
        await server.drain(1)


async def talk(server, sent, pieces=1):
    """Everything that comes back, until the server has nothing to add or closes."""
    async with listening(server) as (reader, writer):
        size = max(1, len(sent) // pieces)
        for start in range(0, len(sent), size):
            writer.write(sent[start : start + size])
            await writer.drain()
            await asyncio.sleep(0)
        writer.write_eof()
        async with asyncio.timeout(5):
            return await reader.read()


def echo(request):
    return HttpResponse(200, (), f"{request.method} {request.target} ".encode() + request.body)


def echo_server(max_body_bytes=100):
    return HttpServer(echo, max_body_bytes=max_body_bytes, on_failure=lambda _: HttpResponse(500))


def test_an_allowed_request_tells_envoy_where(world):
    answer = serving(world).handle(question(world.acme_key))
    headers = dict(answer.headers)
    assert answer.status == 200
    assert headers["x-envoy-auth-headers-to-remove"].split(",")[0] == "authorization"
    assert set(headers["x-gateway-destination-endpoint"].split(",")) == {"127.0.0.1:9001", "127.0.0.1:9002"}
    assert headers["x-gateway-ticket"] == "ticket"


OF_THE_GUARD = {Reason.ENGINE_LOST, Reason.ENGINE_LATE}


@pytest.mark.parametrize("reason", sorted(set(Reason) - OF_THE_GUARD))
def test_no_refusal_is_200_or_5xx_for_envoy(world, reason):
    class Refusing(DecisionCore):
        def decide(self, request, now_unix_seconds):
            return refuse(reason, "no")

    answer = service(Refusing()).handle(question(world.acme_key))
    assert 400 <= answer.status < 500  # Envoy drops the body of a 5xx
    own = refuse(reason, "no").status
    assert answer.status == (UNAVAILABLE_ON_THE_WIRE if own == 503 else own)
    assert own != UNAVAILABLE_ON_THE_WIRE


def test_an_answer_of_the_gateways_own_lets_nothing_through_to_an_engine(world):
    models = HttpRequest("GET", "/v1/models", {"authorization": f"Bearer {world.acme_key}"}, b"")
    asked = HttpRequest("GET", "/authorize/v1/models", models.headers, b"")
    assert serving(world).handle(models).status == 200
    assert serving(world).handle(asked).status == 404


@pytest.mark.parametrize("target", ["/", "/authorize", "/authorizev1/chat/completions", "/v1/chat/completions", "/x"])
def test_a_target_that_is_no_question_is_404(world, target):
    assert serving(world).handle(question(world.acme_key, target=target)).status == 404


def test_a_partial_body_is_refused(world):
    answer = serving(world).handle(question(world.acme_key, **{"x-envoy-auth-partial-body": "true"}))
    assert answer.status == 413


async def test_a_bug_in_the_core_denies_and_logs_nothing_of_the_request(world):
    body = b'{"prompt":"the-secret-prompt"}'
    head = f"POST {CHAT}?q=the-secret-query HTTP/1.1\r\nauthorization: Bearer {world.acme_key}\r\n"
    sent = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
    with structlog.testing.capture_logs() as logs:
        answer = await talk(service(BrokenCore()).server(), sent)
    assert answer.startswith(b"HTTP/1.1 425 ")
    assert b'"code": "internal_error"' in answer
    assert [entry["event"] for entry in logs] == ["decision.failed"]
    assert logs[0]["error"] == "RuntimeError"
    assert "test_gateway_service.py" in repr(logs[0]["where"])
    assert "the-secret" not in repr(logs)
    assert world.acme_key not in repr(logs)


@pytest.mark.parametrize("pieces", [1, 3, 1000])
async def test_requests_on_one_connection_are_answered_in_order(pieces):
    sent = b"".join(b"POST /%d HTTP/1.1\r\ncontent-length: 3\r\n\r\nabc" % index for index in range(5))
    answer = await talk(echo_server(), sent, pieces)
    assert [line for line in answer.split(b"\r\n") if b"POST" in line] == [
        *(b"POST /%d abcHTTP/1.1 200 OK" % index for index in range(4)),
        b"POST /4 abc",
    ]


async def test_a_chunked_body_is_put_together():
    sent = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    assert (await talk(echo_server(), sent)).endswith(b"POST / abc")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\nabc", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: 101\r\n\r\n" + b"a" * 101, 413),
        (b"POST / HTTP/1.1\r\n" + b"a: b\r\n" * 30_000 + b"\r\n", 431),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\ncontent-length: 101\r\n\r\n" + b"a" * 101 + b"GET / HTTP/1.1\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 501),
    ],
)
async def test_what_cannot_be_served_is_answered_and_closed(sent, status):
    answer = await talk(echo_server(), sent)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"connection: close" in answer
    assert answer.count(b"HTTP/1.1") == 1


@given(st.binary(max_size=200) | st.lists(st.sampled_from([b"POST", b" / ", b"HTTP/1.1", b"\r\n", b":"])).map(b"".join))
def test_no_bytes_make_a_connection_raise(data):
    async def feed():
        protocol = echo_server().connection()
        protocol.data_received(data)

    asyncio.run(feed())


async def test_a_drain_waits_for_the_request_that_is_coming_in():
    server = echo_server()
    async with listening(server) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\na")
        await writer.drain()
        async with asyncio.timeout(5):
            while not server.connections or any(c._is_idle for c in server.connections):  # noqa: ASYNC110
                await asyncio.sleep(0)
        draining = asyncio.create_task(server.drain(5))
        await asyncio.sleep(0)
        writer.write(b"bc")
        async with asyncio.timeout(5):
            answer = await reader.read()
        await draining
    assert answer.endswith(b"connection: close\r\n\r\nPOST / abc")


@pytest.mark.parametrize("start", [b"G", b"POST /x HTTP/1.1\r\nA: ", b"POST /x HTTP/1.1\r\nContent-Length: 90\r\n\r\n"])
async def test_a_request_that_never_ends_is_408(monkeypatch, start):
    monkeypatch.setattr(http_protocol, "RECEIVE_SECONDS", 0.1)
    monkeypatch.setattr(http_protocol, "LINGER_SECONDS", 0.1)
    async with listening(echo_server()) as (reader, writer):
        writer.write(start)
        async with asyncio.timeout(5):
            assert (await reader.read()).startswith(b"HTTP/1.1 408")


async def test_a_connection_of_a_stranger_may_not_be_silent_and_one_of_envoys_may(monkeypatch):
    monkeypatch.setattr(http_protocol, "RECEIVE_SECONDS", 0.05)
    stranger = HttpServer(echo, max_body_bytes=9, on_failure=echo, idle_seconds=0.1)
    for sent in (b"", b"GET /x HTTP/1.1\r\n\r\n"):
        async with listening(stranger) as (reader, writer), asyncio.timeout(5):
            writer.write(sent)
            assert (await reader.read()).count(b"HTTP/1.1 200") == (1 if sent else 0)
        stranger.is_closing = False
    async with listening(echo_server()) as (reader, writer), asyncio.timeout(5):
        for _ in range(2):
            writer.write(b"GET /x HTTP/1.1\r\n\r\n")
            assert await reader.readuntil(b"GET /x ") != b""
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(asyncio.Event().wait())), 0.15)


async def test_a_drain_does_not_wait_for_an_idle_connection_nor_beyond_its_deadline():
    server = echo_server()
    async with listening(server) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\na")
        await writer.drain()
        async with asyncio.timeout(5):
            while not server.connections:  # noqa: ASYNC110
                await asyncio.sleep(0)
            await server.drain(0.05)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
    assert not server.connections


def test_a_line_break_in_a_header_is_never_sent():
    async def send():
        broken = HttpServer(
            lambda _: HttpResponse(200, (("a", "b\r\nc: d"),)), max_body_bytes=9, on_failure=lambda _: HttpResponse(500)
        )
        return await talk(broken, b"GET / HTTP/1.1\r\n\r\n")

    assert asyncio.run(send()).startswith(b"HTTP/1.1 400 ")


def test_the_metrics_page_shows_health_and_no_stale_model(world):
    telemetry, is_ready = Telemetry(), False
    page = telemetry_page(telemetry, lambda: is_ready)

    def get(target, method="GET"):
        return page(HttpRequest(method, target, {}, b""))

    assert (get("/livez").status, get("/readyz").status) == (200, 503)
    is_ready = True
    assert get("/readyz").status == 200
    telemetry.show_models(index_of(world.snapshot()))
    assert b'enginehouse_gateway_requests_waiting{model="acme-chat"} 0.0' in get("/metrics").body
    telemetry.show_models(index_of(world.snapshot().model_copy(update={"routes": ()})))
    assert b"acme-chat" not in get("/metrics").body
    assert (get("/x").status, get("/metrics", "POST").status) == (404, 405)
