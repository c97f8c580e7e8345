"""OpenAI's own client asks by an alias, and goes on when the engines of its model are killed."""

import os
import signal
import socket

import pytest

from fleet.snapshot import GatewayRoute
from tests.gateway.late import Late
from tests.gateway.simulated import simulated_engine

openai = Late("openai")

SAY = [{"role": "user", "content": "Say hello to the fleet."}]


@pytest.fixture(scope="module")
def engines():
    with (
        simulated_engine("--time-scale", "0.02", served=("large",)) as large,
        simulated_engine("--time-scale", "0.02", served=("small",)) as small,
    ):
        yield large, small


@pytest.fixture
def client(gateway, world, until, engines):
    arms = [world.arm(engine.address, name=name) for engine, name in zip(engines, ("large", "small"), strict=True)]
    routes = (
        GatewayRoute(model="large", tenants=("acme",), arms=arms[:1], aliases=("latest",), fallbacks=("small",)),
        GatewayRoute(model="small", tenants=("acme",), arms=arms[1:]),
        *world.snapshot(gateway.one.address).routes,
    )
    gateway.publish(world.snapshot().model_copy(update={"routes": routes}))
    with openai.OpenAI(api_key=world.acme_key, base_url=f"{gateway.url}/v1", max_retries=0, timeout=10) as client:
        until(lambda: "latest" in [model.id for model in client.models.list()], "the routes")
        yield client


def is_there(engine):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", engine.port)) == 0


def test_an_alias_is_served_and_its_engine_knows_the_name(client):
    raw = client.chat.completions.with_raw_response.create(model="latest", messages=SAY, max_tokens=4)
    assert raw.headers["x-served-model"] == raw.parse().model == "large"


def test_a_stream_by_an_alias_says_the_model_that_serves(client):
    chunks = list(client.chat.completions.create(model="latest", messages=SAY, max_tokens=4, stream=True))
    assert {chunk.model for chunk in chunks} == {"large"}


def test_when_its_engine_is_killed_every_request_is_served_by_the_stand_in(gateway, client, engines, until):
    """The last test of these engines."""
    large, _ = engines
    os.kill(large.process.pid, signal.SIGKILL)
    until(lambda: not is_there(large), "the end of the engine")
    for stream in (False, True, False):
        raw = client.chat.completions.with_raw_response.create(
            model="latest", messages=SAY, max_tokens=4, stream=stream
        )
        assert raw.headers["x-served-model"] == "small"
        answer = raw.parse()
        assert {chunk.model for chunk in answer} == {"small"} if stream else answer.model == "small"
    charged = 'enginehouse_gateway_tokens_total{basis="usage",kind="output",model="small",tenant="acme"}'
    until(lambda: gateway.metric(charged) == 12, "what was charged is the stand-in's")
