"""Routes without the guard, through real Envoy: the same bytes, the same charges, no end that looks whole."""

import asyncio
import base64
import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx2
import pytest

from fleet.snapshot import GatewayTenant
from gateway.envoy_lua import EXACT_EVENTS, STEP_EVENTS
from gateway.stream_usage import StreamUsage
from tests.gateway.conftest import answer, chunk, read_request
from tests.gateway.leaving import held

CHAT = "/v1/chat/completions"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
GAP_SECONDS = 0.002
TOKENS = "enginehouse_gateway_tokens_total"


@dataclass
class ToldEngine:
    """Writes the pieces that a request names, each in a packet of its own."""

    name: str = "told"
    port: int = 0
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    status: int = 200
    aborted: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def serve(self, reader, writer):
        while (request := await read_request(reader)) is not None:
            if not request[0].startswith("POST "):  # what is asked of engines besides
                await answer(writer, 404, b"")
                continue
            self.heads.append(request[0])
            self.bodies.append(request[1])
            told = json.loads(request[1])
            if self.status != 200:
                await answer(writer, self.status, b"{}")
            elif not told.get("stream"):
                await self._whole(writer, told)
            else:
                await self._stream(reader, writer, told)

    async def _whole(self, writer, told):
        usage = {"usage": {"prompt_tokens": 11, "completion_tokens": 7}}
        said = json.dumps({"text": 'no "usage":{"prompt_tokens":1}' * told.get("times", 1), **usage}).encode()
        await answer(writer, 200, said, "content-type: application/json\r\n")

    async def _stream(self, reader, writer, told):
        writer.write(HEAD)
        gone = asyncio.ensure_future(reader.read(1))
        for piece in told["pieces"]:
            writer.write(chunk(base64.b64decode(piece)))
            await writer.drain()
            await asyncio.sleep(GAP_SECONDS)
        if told.get("then") == "cut":
            writer.transport.abort()
            return
        if told.get("then") == "wait":
            await gone
            self.aborted += 1
            raise ConnectionResetError
        gone.cancel()
        await asyncio.wait((gone,))
        writer.write(b"0\r\n\r\n")
        await writer.drain()


@pytest.fixture(scope="module")
def engine(gateway):
    made = ToldEngine()
    gateway.servers.start(made)
    return made


@pytest.fixture(scope="module")
def other(gateway):
    made = ToldEngine("other")
    gateway.servers.start(made)
    return made


@pytest.fixture
def client(gateway, world, engine, until):
    with httpx2.Client(
        base_url=gateway.url, timeout=20, headers={"authorization": f"Bearer {world.acme_key}"}
    ) as client:
        publish(gateway, world, engine.address)
        engine.status = 200
        until(lambda: goes_straight(client, engine), "the route without the guard")
        until(lambda: held(gateway) == 0, "the charge of what was asked before")
        yield client


def publish(gateway, world, *addresses, **limits):
    snapshot = world.snapshot(*addresses, is_guarded=False)
    acme = GatewayTenant(name="acme", tokens_per_minute=100_000_000, **limits)
    gateway.publish(snapshot.model_copy(update={"tenants": (acme, *snapshot.tenants[1:])}))


def chat(*pieces, **members):
    told = {"pieces": [base64.b64encode(piece).decode() for piece in pieces]} if pieces else {}
    return {"model": "acme-chat", "messages": [{"role": "user", "content": "a secret prompt"}], **told, **members}


def goes_straight(client, engine):
    """The guard names the engine as the host; Envoy leaves the client's."""
    known = len(engine.heads)
    done = client.post(CHAT, json=chat())
    return done.status_code == 200 and engine.heads[known:] and host_of(engine.heads[-1]) == client.base_url.netloc


def host_of(head):
    return next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: ")).encode()


def asked(client, *pieces, **members):
    """What a client gets of a stream, as it was sent."""
    with client.stream("POST", CHAT, json=chat(*pieces, stream=True, **members)) as stream:
        assert stream.status_code == 200
        return b"".join(stream.iter_raw())


def event(text="a", tail=b""):
    return b'data: {"id":"1","choices":[{"index":0,"delta":{"content":%b}}]%b}\n\n' % (json.dumps(text).encode(), tail)


USAGE = b'data: {"id":"1","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"details":{"a":1}}}\n\n'
DONE = b"data: [DONE]\n\n"
NULL = b',"usage":null'


def test_a_whole_answer_goes_straight_and_is_charged_by_its_usage(gateway, client, engine, until):
    before = gateway.metric(f'{TOKENS}{{basis="usage",kind="output"')
    answered = client.post(CHAT, json=chat(times=20_000))
    assert (answered.status_code, answered.json()["usage"]["completion_tokens"]) == (200, 7)
    until(lambda: gateway.metric(f'{TOKENS}{{basis="usage",kind="output"') == before + 7, "the charge")
    assert not any(name.startswith("x-gateway") for name in answered.headers)
    assert answered.headers["x-served-model"] == "acme-chat"
    assert "x-gateway" not in engine.heads[-1].lower()
    assert "authorization" not in engine.heads[-1].lower()
    assert json.loads(engine.bodies[-1])["max_tokens"] > 0
    assert gateway.access_log[-1]["passed_to"] == engine.address


def test_split_at_every_byte_the_client_sees_the_bytes_of_an_unasked_engine(client, engine):
    bare = event() + event('é "usage":null, [DONE]') + b": ping\n\n" + event("b")
    asked_for = event(tail=NULL) + event('é "usage":null, [DONE]', NULL) + b": ping\n\n" + event("b", NULL)
    written = asked_for + USAGE + DONE
    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(lambda at: asked(client, written[:at], written[at:]), range(1, len(written))))
    assert set(seen) == {bare + DONE}
    assert json.loads(engine.bodies[-1])["stream_options"] == {"include_usage": True}
    assert asked(client, *(written[at : at + 1] for at in range(len(written)))) == bare + DONE


def test_a_client_that_asked_for_usage_gets_every_byte(gateway, client, until):
    written = event(tail=NULL) + USAGE + DONE
    before = gateway.metric(f'{TOKENS}{{basis="usage",kind="output"')
    options = {"stream_options": {"include_usage": True}}
    with ThreadPoolExecutor(16) as pool:
        pieces = [(written[:at], written[at:]) for at in range(1, len(written))]
        seen = set(pool.map(lambda two: asked(client, *two, **options), pieces))
    assert seen == {written}
    charged = before + 2 * len(pieces)
    until(lambda: gateway.metric(f'{TOKENS}{{basis="usage",kind="output"') == charged, "every charge")


ODD = (
    event(), event("x", NULL), event("y", b', "usage": null'), USAGE, USAGE.replace(b"\n", b"\r\n"), b": c\n\n", b"\n",
    b"\r\n", event("z").replace(b"\n", b"\r\n"), event("q").replace(b"\n", b"\r"), b"event: e\ndata: {}\n\n", DONE,
    b"data:{}\n\n", b'data: {"usage":{"prompt_tokens":1,"completion_tokens":1},"choices":[{"index":0}]}\n\n',
)  # fmt: skip
ENDS = (b"", b"", b"data: [DONE]", b"data: half")


def test_whatever_an_engine_writes_the_script_shows_what_the_guard_shows(client):
    chance = random.Random(6)  # noqa: S311
    texts = [b"".join((*chance.choices(ODD, k=chance.randint(1, 7)), chance.choice(ENDS))) for _ in range(200)]
    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(lambda text: asked(client, *cut(text, random.Random(len(text)))), texts))  # noqa: S311
    assert seen == list(map(guarded, texts))


def cut(text, chance):
    cuts = sorted(chance.sample(range(1, len(text)), min(3, len(text) - 1)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def guarded(text):
    stream = StreamUsage(is_injected=True)
    return stream.feed(text) + stream.finish()


def test_a_client_that_leaves_is_charged_what_it_saw_and_the_engine_sees_it(gateway, client, engine, until):
    before = gateway.metric(f'{TOKENS}{{basis="counted",kind="output"'), engine.aborted
    with client.stream("POST", CHAT, json=chat(event() + event(), event(), stream=True, then="wait")) as stream:
        got = b""
        for piece in stream.iter_raw():
            got += piece
            if got.count(b"data:") == 3:
                break
    until(lambda: engine.aborted == before[1] + 1, "the engine sees that its client left", 0.5)
    until(lambda: gateway.metric(f'{TOKENS}{{basis="counted",kind="output"') == before[0] + 3, "the charge")


def test_an_engine_that_breaks_off_is_never_a_clean_end_and_is_charged(gateway, client, until):
    before = gateway.metric('enginehouse_gateway_requests_ended_total{deployment="chat",end="engine_lost"')
    counted = gateway.metric(f'{TOKENS}{{basis="counted",kind="output"')
    with pytest.raises(httpx2.RemoteProtocolError):
        asked(client, event(), event(), then="cut")
    with pytest.raises(httpx2.RemoteProtocolError):
        asked(client, event(), b"data: ha", then="cut")
    name = 'enginehouse_gateway_requests_ended_total{deployment="chat",end="engine_lost"'
    until(lambda: gateway.metric(name) == before + 2, "two lost engines")
    assert gateway.metric(f'{TOKENS}{{basis="counted",kind="output"') == counted + 3


def test_the_events_of_a_long_stream_are_counted_by_steps_until_it_ends(gateway, client, until):
    name = f'{TOKENS}{{basis="counted",kind="output"'
    begun = EXACT_EVENTS + 2 * STEP_EVENTS + 1
    before = gateway.metric(name)
    assert asked(client, *[event()] * begun) == event() * begun
    until(lambda: gateway.metric(name) == before + begun, "the charge of a whole stream is exact")
    with pytest.raises(httpx2.RemoteProtocolError):
        asked(client, *[event()] * begun, then="cut")
    until(lambda: gateway.metric(name) > before + begun, "the charge of one that broke off")
    assert before + 2 * begun <= gateway.metric(name) < before + 2 * begun + STEP_EVENTS


def test_before_the_first_byte_another_engine_is_asked(gateway, client, world, engine, other, until):
    publish(gateway, world, engine.address, other.address)
    until(lambda: (client.post(CHAT, json=chat()), other.heads)[1], "both engines")
    engine.status = 503
    for _ in range(6):
        assert asked(client, event(), USAGE, DONE) == event() + DONE
    engine.status = 200
    publish(gateway, world, other.address)
    publish(gateway, world, "127.0.0.1:1", other.address)
    until(lambda: client.post(CHAT, json=chat()).status_code == 200, "the other engine")


def test_no_engine_is_an_error_in_the_usual_form_and_costs_nothing(gateway, client, world, until):
    publish(gateway, world, "127.0.0.1:1")

    def is_refused():
        answered = client.post(CHAT, json=chat())
        return answered.status_code == 503 and answered.json()["error"]["code"] == "no_endpoint"

    until(is_refused, "an error without an engine")
    end = 'enginehouse_gateway_requests_ended_total{deployment="chat",end="no_engine"'
    until(lambda: gateway.metric(end) >= 1, "the end without an engine")


def test_an_end_makes_room_for_the_next(gateway, client, world, engine, until):
    publish(gateway, world, engine.address, concurrent_requests=1)
    until(lambda: client.post(CHAT, json=chat()).headers.get("x-ratelimit-limit-requests") == "1", "the limit")
    until(lambda: held(gateway) == 0, "the end of what was asked before")
    with client.stream("POST", CHAT, json=chat(event(), stream=True, then="wait")) as stream:
        next(stream.iter_raw())
        assert client.post(CHAT, json=chat()).status_code == 429
    until(lambda: client.post(CHAT, json=chat()).status_code == 200, "room for the next", 1.0)


def test_headers_of_a_client_decide_nothing(gateway, client, world, engine, until):
    snapshot = world.snapshot(engine.address)
    gateway.publish(snapshot)
    until(
        lambda: (client.post(CHAT, json=chat()), host_of(engine.heads[-1]) == engine.address.encode())[1], "the guard"
    )
    forged = {"x-gateway-unguarded": "kept", "x-gateway-edits": '0:9:1:"', "x-gateway-ticket": "t"}
    assert client.post(CHAT, json=chat(), headers=forged).status_code == 200
    assert host_of(engine.heads[-1]) == engine.address.encode()
    assert "x-gateway" not in engine.heads[-1].lower()
    publish(gateway, world, engine.address)
    until(lambda: goes_straight(client, engine), "the route without the guard")
    client.post(CHAT, json=chat(), headers=forged)
    assert json.loads(engine.bodies[-1])["messages"] == chat()["messages"]
