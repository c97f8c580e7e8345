"""What engines say of their caches reaches the router: over real sockets, with gaps, restarts and rubbish."""

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import httpx2
import msgspec
import pytest
import structlog
import zmq
import zmq.asyncio
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from pydantic import ValidationError

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewaySnapshot
from gateway import kv_sockets
from gateway.affinity import prompt_blocks
from gateway.index import index_of
from gateway.kv_metrics import KvMetrics
from gateway.kv_sockets import Publisher
from gateway.kv_subscriber import KvSubscriber, sources
from gateway.router import Router, RoutingRequest
from tests.gateway.kv_publisher import SIZE, KvPublisher, captured, removed, stored

ADDRESS = "127.0.0.1:9001"
TOKENS = list(range(1, 13))
CLEARED = {"type": "AllBlocksCleared"}


@dataclass
class Tables:
    index: object = None


@dataclass
class Heard:
    publisher: KvPublisher
    subscriber: KvSubscriber
    tables: Tables
    router: Router = field(default_factory=Router)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def cached(self, tokens=TOKENS):
        """How many tokens of a prompt the endpoint is believed to hold."""
        prompt = prompt_blocks({"prompt": [*tokens, 0]}, model="m", block_tokens=SIZE)
        request = RoutingRequest(prompt.blocks, prompt.block_tokens, prompt.prompt_tokens)
        chance = Random(0)  # noqa: S311
        found = self.router.choose(request, [GatewayEndpoint(address=ADDRESS)], time.time(), chance)
        return found.candidates[0].cached_tokens

    def count(self, kind):
        lines = generate_latest(self.registry).decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if f'="{kind}"' in line and "_total" in line)


def index_with(template):
    arm = GatewayArm(
        deployment="chat",
        identity="f" * 32,
        engine="vllm",
        endpoints=(GatewayEndpoint(address=ADDRESS),),
        kv_events=template,
    )
    return index_of(GatewaySnapshot(routes=(GatewayRoute(model="m", tenants=("acme",), arms=(arm,)),)))


@asynccontextmanager
async def listening(*, before=(), keeps=1000, has_replay=True):
    """A subscriber that hears a publisher; ``before`` = what happened before it came."""
    context = zmq.asyncio.Context()
    publisher = KvPublisher(context, keeps=keeps)
    for events in before:
        publisher.record(*events)
    template = publisher.template if has_replay else publisher.template.partition(",")[0]
    tables, router, registry = Tables(index_with(template)), Router(), CollectorRegistry()
    subscriber = KvSubscriber(tables, router, KvMetrics(registry), time.time)
    tasks = [asyncio.create_task(subscriber.run()), asyncio.create_task(publisher.answer_replays())]
    try:
        yield Heard(publisher, subscriber, tables, router, registry)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        publisher.close()
        context.destroy(linger=0)


async def until(condition, what, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        await asyncio.sleep(0.01)


async def joined(heard):
    """Until the subscription has come, and a message over it."""
    async with asyncio.timeout(10):
        await heard.publisher.subscribed()
    before = heard.count("cleared")
    await heard.publisher.publish(CLEARED)
    await until(lambda: heard.count("cleared") > before, "a first message")


async def test_what_an_engine_stores_and_gives_up_is_believed():
    async with listening() as heard:
        await joined(heard)
        await heard.publisher.publish(stored([1, 2, 3], TOKENS))
        await until(lambda: heard.cached() == 12, "three blocks")
        assert heard.router.block_tokens(heard.tables.index.routes["acme", "m"].arms) == SIZE
        await heard.publisher.publish(removed([3]))
        await until(lambda: heard.cached() == 8, "two blocks")
        await heard.publisher.publish(CLEARED)
        await until(lambda: heard.cached() == 0, "none")
        assert heard.count("stored") == 1
        assert heard.count("removed") == 1


async def test_what_was_said_before_the_gateway_came_is_asked_for():
    async with listening(before=[[stored([1], TOKENS[:4])], [stored([2, 3], TOKENS[4:], parent=1)]]) as heard:
        await until(lambda: heard.cached() == 12, "what was stored before")
        assert heard.publisher.asked == [0]


async def test_a_gap_is_filled_and_only_the_gap():
    async with listening() as heard:
        await joined(heard)
        await heard.publisher.publish(stored([1], TOKENS[:4]))
        await until(lambda: heard.cached() == 4, "the first")
        asked = len(heard.publisher.asked)
        heard.publisher.record(stored([2], TOKENS[4:8], parent=1))  # nobody hears it
        gap = heard.publisher.next - 1
        await heard.publisher.publish(stored([3], TOKENS[8:], parent=2))
        await until(lambda: heard.cached() == 12, "all three")
        assert heard.publisher.asked[asked:] == [gap]
        assert heard.count("missed") == 0


async def test_a_gap_that_the_engine_does_not_remember_is_counted_and_what_hangs_on_it_is_left():
    async with listening(keeps=1) as heard:
        await joined(heard)
        for first in (1, 3):
            heard.publisher.record(stored([first], TOKENS[:4]))
        await heard.publisher.publish(stored([9], TOKENS[4:8], parent=1))
        await until(lambda: heard.count("unplaced") == 1, "a block without a known parent")
        assert heard.count("missed") == 2
        assert heard.cached() == 0


async def test_an_engine_that_repeats_nothing_is_heard_all_the_same(monkeypatch):
    monkeypatch.setattr(kv_sockets, "REPLAY_SECONDS", 0.1)
    async with listening(has_replay=False) as heard:
        await joined(heard)
        heard.publisher.record(stored([7], TOKENS[:4]))
        await heard.publisher.publish(stored([1], TOKENS[:4]))
        await until(lambda: heard.cached() == 4, "the block")
        assert heard.publisher.asked == []
        silent = heard.publisher.template.partition(",")[0] + ",tcp://{host}:1"
        heard.tables.index = index_with(silent)
        await until(lambda: heard.count("no_replay") == 1, "nobody answers there")
        await joined(heard)


async def test_a_restarted_engine_begins_anew():
    async with listening() as heard:
        await joined(heard)
        await heard.publisher.publish(stored([1, 2, 3], TOKENS))
        await until(lambda: heard.cached() == 12, "before the restart")
        heard.publisher.restart()
        await heard.publisher.publish(stored([1], [99] * 4))
        await until(lambda: heard.cached([99] * 4) == 4, "after the restart")
        assert heard.cached() == 0


async def test_a_restart_that_the_numbers_do_not_show_is_told_by_the_metrics():
    async with listening() as heard:
        await joined(heard)
        await heard.publisher.publish(stored([1], TOKENS[:4]))
        await until(lambda: heard.cached() == 4, "before the restart")
        last = heard.publisher.next
        heard.publisher.restart()
        heard.publisher.record(stored([1], [99] * 4))  # the same name for another block
        for _ in range(last):
            heard.publisher.record()
        heard.router.restarted(ADDRESS)
        heard.subscriber.restarted(ADDRESS)
        heard.subscriber.restarted("127.0.0.1:9002")
        await heard.publisher.publish(stored([2], [98] * 4, parent=1))
        await until(lambda: heard.cached([99] * 4 + [98] * 4) == 8, "the new process")


async def test_rubbish_is_counted_and_nothing_of_it_is_logged():
    secret = "the-secret-prompt"
    with structlog.testing.capture_logs() as logs:
        async with listening() as heard:
            await joined(heard)
            for payload in (b"", b"\xc1", b"\x93\x01\x90", secret.encode(), b"\x92\x01\x91\x81\xa4type\xa1x"):
                heard.publisher.record_payload(payload)
                await heard.publisher.publish_payload(payload)
            for frames in ([b"one"], [b"x", b"short", b"y"], [b"x", b"\xff" * 8, b"y"]):
                await heard.publisher.events.send_multipart(frames)
            await heard.publisher.publish(stored([1], TOKENS[:4]))
            await until(lambda: heard.cached() == 4, "what can be read")
            assert heard.count("unreadable") >= 3
    assert secret not in repr(logs)


@pytest.mark.parametrize("name", ["vllm32_kv_events", "vllm32_kv_events_small"])
async def test_the_messages_of_a_real_engine_leave_nothing_unplaced(name):
    payloads = captured(name)
    if not payloads:
        pytest.skip("the captures of real engines are not beside this checkout")
    async with listening() as heard:
        for payload in payloads:
            heard.publisher.record_payload(payload)
        heard.subscriber.restarted(ADDRESS)
        await joined(heard)
        await until(lambda: heard.count("stored") > 1, "its blocks")
        assert heard.count("unplaced") == heard.count("unreadable") == 0


async def test_an_arm_that_publishes_no_more_is_left():
    async with listening() as heard:
        await joined(heard)
        heard.tables.index = index_with(None)
        await until(lambda: not heard.subscriber._heard, "the end of the subscription")


# --- Where they publish ---
@given(st.integers(1, 65535))
def test_the_places_are_those_of_the_endpoint(port):
    publisher = Publisher.of("tcp://{host}:5557,ipc:///run/kv-{port}.sock", f"[::1]:{port}")
    assert publisher == ("tcp://[::1]:5557", f"ipc:///run/kv-{port}.sock")
    assert Publisher.of("tcp://{host}:5557", "10.0.0.1:8000") == ("tcp://10.0.0.1:5557", "")


@pytest.mark.parametrize(
    "template", ["", "tcp://10.0.0.1:5557", "tcp://{host}", "http://{host}:1", "tcp://{host}:1,", "ipc://relative"]
)
def test_a_template_names_the_endpoints_own_host_or_a_local_socket(template):
    with pytest.raises(ValidationError, match="kv_events"):
        index_with(template)


def test_a_gateway_process_sends_token_ids_to_the_engine_that_has_them(gateway, world, tmp_path, until):
    """Of two engines one says that it holds prompts, which no request of this gateway has put there."""
    folder = tmp_path
    with zmq.Context() as context, context.socket(zmq.XPUB) as events:
        events.setsockopt(zmq.LINGER, 0)
        events.bind(f"ipc://{folder}/{gateway.two.port}")
        snapshot = world.snapshot(gateway.one.address, gateway.two.address)
        template = f"ipc://{folder}/{{port}}"
        gateway.publish(snapshot.model_copy(update={"routes": tuple(publishing(snapshot.routes, template))}))
        until(lambda: events.poll(0), "a subscription")
        prompts = [[number * 100 + place for place in range(64)] for number in range(6)]
        said = [stored([100 * number + place for place in range(16)], prompt) for number, prompt in enumerate(prompts)]
        payload = msgspec.msgpack.encode([1.0, said, 0])
        events.send_multipart([b"kv", bytes(8), payload])
        until(lambda: gateway.metric("enginehouse_gateway_kv_events_total") == len(prompts), "the events")
        headers = {"authorization": f"Bearer {world.acme_key}"}
        for prompt in prompts:
            body = {"model": "acme-chat", "prompt": [*prompt, 1]}
            answer = httpx2.post(f"{gateway.url}/v1/completions", json=body, headers=headers)
            assert (answer.status_code, answer.text) == (200, "two")
    assert "7, 8, 9" not in gateway.gateway_log


def publishing(routes, template):
    for route in routes:
        arms = tuple(arm.model_copy(update={"kv_events": template}) for arm in route.arms)
        yield route.model_copy(update={"arms": arms[:1] if route.model == "acme-chat" else ()})


def test_hosted_and_silent_arms_have_no_source():
    assert sources(index_with(None)) == ()
    (source,) = sources(index_with("tcp://{host}:5557"))
    assert (source.address, source.deployment, source.model) == (ADDRESS, "chat", "m")
