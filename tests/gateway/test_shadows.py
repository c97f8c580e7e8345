"""Copies for shadows: sent beside the client's request, charged to nobody, and never felt."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewayShadow, HostedEndpoint
from gateway import shadows as shadows_module
from gateway.arms import pool_of
from gateway.asked import Request
from gateway.decision import Allowed, DecisionCore
from gateway.engine_connections import EngineConnections
from gateway.index import index_of
from gateway.passage import End, Ending
from gateway.shadows import Outcome, Shadows
from gateway.targets import engine_at
from tests.gateway.guarded import (
    STREAM_HEAD,
    FakeEngine,
    FakePassage,
    ask,
    guarding,
    piece,
    until,
    wait_for_end,
    whole_answer,
)

CHAT = "/v1/chat/completions"
DONE = b"data: [DONE]\n\n"


async def stream(_, writer):
    writer.write(STREAM_HEAD + piece(DONE) + b"0\r\n\r\n")
    await writer.drain()


def status(number):
    async def script(_, writer):
        writer.write(f"HTTP/1.1 {number} X\r\ncontent-length: 2\r\n\r\n{{}}".encode())
        await writer.drain()

    return script


class FakeMirror:
    """A copy for one engine."""

    name = ("large", "canary")

    def __init__(self, address):
        self.target = engine_at(address)
        self.told = []

    def edited(self, body):
        return body + b" "

    def begin(self):
        self.told.append("begin")

    def end(self, *, is_well, pause_seconds=0.0):
        self.told.append(is_well)


class Counting:
    """Metrics that remember."""

    def __init__(self):
        self.outcomes = []

    def mirrored(self, name, outcome, first_byte_seconds):
        self.outcomes.append(outcome)


async def mirrored(script, *, limit=4, address=None):
    """A request whose copy goes to an engine with a script: the client's answer, the outcomes, what was told."""
    metrics, engines = Counting(), EngineConnections()
    shadows = Shadows(engines, metrics, limit=limit)
    async with FakeEngine(stream) as engine, FakeEngine(script) as shadow:
        passage = FakePassage((engine.address,))
        passage.mirror = FakeMirror(address or shadow.address)
        async with guarding(passage, shadows=shadows) as (_, reader, writer):
            ask(writer, body=b"{}")
            answer = await whole_answer(reader)
            await until(lambda: metrics.outcomes)
        await until(lambda: not shadows.running)
        assert shadows._bytes == 0
        engines.close()
        assert [ending.end for ending in passage.endings] == [End.WHOLE]
        return answer, metrics.outcomes, passage.mirror.told, shadow.requests


@pytest.mark.parametrize(
    ("script", "outcome", "is_well"),
    [
        (stream, Outcome.ANSWERED, True),
        (status(400), Outcome.REFUSED, True),
        (status(503), Outcome.REFUSED, False),
        (status(200), Outcome.ANSWERED, True),
    ],
)
async def test_a_copy_goes_to_the_shadow_and_its_answer_nowhere(script, outcome, is_well):
    answer, outcomes, told, requests = await mirrored(script)
    assert answer == (200, DONE, True)
    assert (outcomes, told) == ([outcome], ["begin", is_well])
    assert requests[0].endswith(b"{} ")


async def test_a_shadow_that_is_away_is_nobodys_trouble():
    answer, outcomes, told, _ = await mirrored(stream, address="127.0.0.1:1")
    assert answer == (200, DONE, True)
    assert (outcomes, told) == ([Outcome.LOST], ["begin", False])


async def test_when_too_many_are_on_their_way_there_are_no_more():
    answer, outcomes, told, requests = await mirrored(stream, limit=0)
    assert answer == (200, DONE, True)
    assert (outcomes, told, requests) == ([Outcome.TOO_MANY], [], [])


async def test_copies_hold_a_bounded_number_of_bytes(monkeypatch):
    monkeypatch.setattr(shadows_module, "MAX_SHADOW_BYTES", 1)
    _, outcomes, told, requests = await mirrored(stream)
    assert (outcomes, told, requests) == ([Outcome.TOO_MANY], [], [])


async def test_a_shadow_that_hangs_holds_nobody_up_and_is_let_go_at_the_end():
    metrics, engines = Counting(), EngineConnections()
    shadows = Shadows(engines, metrics)
    async with FakeEngine(stream) as engine, FakeEngine(wait_for_end) as shadow:
        passage = FakePassage((engine.address,))
        passage.mirror = FakeMirror(shadow.address)
        async with guarding(passage, shadows=shadows) as (_, reader, writer):
            ask(writer)
            assert await whole_answer(reader) == (200, DONE, True)
            await until(lambda: shadow.requests)
            assert shadows.running == 1
            await shadows.close()
            await until(shadow.gone.is_set)
    assert shadows.running == 0
    assert passage.mirror.told == ["begin", None]


async def test_a_copy_goes_once_even_when_the_request_falls_back():
    metrics = Counting()
    engines = EngineConnections()
    shadows = Shadows(engines, metrics)
    async with FakeEngine(status(503)) as broken, FakeEngine(stream) as other, FakeEngine(stream) as shadow:
        passage = FakePassage((broken.address,), fallbacks=[(other.address,)])
        passage.mirror = FakeMirror(shadow.address)
        async with guarding(passage, shadows=shadows) as (_, reader, writer):
            ask(writer)
            assert (await whole_answer(reader))[0] == 200
            await until(lambda: not shadows.running)
        engines.close()
        assert len(shadow.requests) == 1


# --- The decision ---


def arm(name, *addresses, **more):
    endpoints = tuple(GatewayEndpoint(address=address) for address in addresses)
    return GatewayArm(deployment=name, identity="0" * 32, engine="vllm", endpoints=endpoints, **more)


def core_with(world, shadow, *, salts_cache=False, **limits):
    arms = (arm("a", "10.0.0.1:1"),)
    route = GatewayRoute(model="large", tenants=("acme",), arms=arms, shadow=shadow, salts_cache=salts_cache)
    good = world.snapshot()
    tenants = (good.tenants[0].model_copy(update=limits), *good.tenants[1:])
    core = DecisionCore()
    core.replace(index_of(good.model_copy(update={"routes": (route,), "tenants": tenants})), world.now)
    return core


def decide(core, world):
    body = b'{"model":"large","messages":[{"role":"user","content":"hello"}],"stream":true}'
    return core.decide(Request("POST", CHAT, {"authorization": f"Bearer {world.acme_key}"}, body), world.now)


@given(share=st.floats(0, 1))
def test_copies_are_a_share_of_the_requests_and_charge_nothing(world, share):
    core = core_with(world, GatewayShadow(arm=arm("canary", "10.0.0.2:1"), share=share), requests_per_minute=1000)
    copies = 0
    for _ in range(60):
        allowed = decide(core, world)
        assert isinstance(allowed, Allowed)
        assert allowed.deployment == "a"
        assert dict(allowed.client_headers)["x-ratelimit-remaining-requests"] == "999"
        mirror = allowed.admitted.mirror
        if mirror is not None:
            copies += 1
            mirror.begin()
            assert core.router._loads.in_flight("10.0.0.2:1") == 1
            mirror.end(is_well=True)
        allowed.admitted.end(Ending(End.CLIENT_LEFT, 0, None))
    assert core.router._loads.in_flight("10.0.0.2:1") == len(core._budgets) == 0
    assert share > 0 or not copies
    assert share < 1 or copies == 60
    assert abs(copies / 60 - share) < 0.35


def test_the_copy_asks_the_shadow_for_what_the_engine_is_asked_for(world):
    core = core_with(world, GatewayShadow(arm=arm("canary", "10.0.0.2:1"), share=1), tokens_per_minute=1000)
    admitted = decide(core, world).admitted
    body = b'{"model":"large","messages":[{"role":"user","content":"hello"}],"stream":true}'
    assert admitted.mirror.edited(body) == admitted.edited(body)
    assert json.loads(admitted.edited(body))["max_tokens"] > 0
    assert admitted.mirror.target == engine_at("10.0.0.2:1")


def test_where_tenants_are_parted_in_the_cache_a_shadow_that_can_not_do_so_gets_nothing(world):
    able, unable = arm("canary", "10.0.0.2:1"), arm("canary", "10.0.0.2:1").model_copy(update={"engine": "other"})
    for shadow, is_copied in ((able, True), (unable, False)):
        core = core_with(world, GatewayShadow(arm=shadow, share=1), salts_cache=True)
        assert (decide(core, world).admitted.mirror is not None) is is_copied


def test_a_hosted_shadow_is_asked_by_its_own_name(world):
    hosted = HostedEndpoint(url="https://api.example.com/v1", model="llama-9", api_key_ref="k")
    shadow = arm("groq-chat", hosted=hosted)
    admitted = decide(core_with(world, GatewayShadow(arm=shadow, share=1)), world).admitted
    body = b'{"model":"large","messages":[{"role":"user","content":"hello"}],"stream":true}'
    assert json.loads(admitted.mirror.edited(body))["model"] == "llama-9"
    assert admitted.mirror.target.name == pool_of(shadow)


@pytest.mark.parametrize(
    "shadow",
    [
        arm("canary"),
        arm("canary", "10.0.0.2:1", tenants=("globex",)),
        arm("canary", "not-an-address"),
        arm("canary", "10.0.0.2:1").model_copy(update={"identity": "no\nheader"}),
    ],
    ids=["none", "another tenant's", "no address", "no identity"],
)
def test_a_shadow_that_can_not_be_used_is_left_out(world, shadow):
    assert decide(core_with(world, GatewayShadow(arm=shadow, share=1)), world).admitted.mirror is None
