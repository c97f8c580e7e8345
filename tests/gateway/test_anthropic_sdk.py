"""Anthropic's own Python client through real Envoy, the gateway and the simulated engine."""

import json

import httpx2
import pytest

from fleet.snapshot import ClosedPath
from tests.gateway.late import Late
from tests.gateway.simulated import MODEL, OTHER_MODEL, publish, simulated_engine

anthropic = Late("anthropic")

SAY = [{"role": "user", "content": "Say hello to the fleet."}]
WEATHER = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
SERVES = ("chat", "messages", "count-tokens")


@pytest.fixture(scope="module")
def engine():
    with simulated_engine("--time-scale", "0.02") as engine:
        yield engine


@pytest.fixture
def client(gateway, world, engine):
    publish(gateway, world, engine, serves=SERVES)
    with anthropic.Anthropic(api_key=world.acme_key, base_url=gateway.url, max_retries=0, timeout=10) as client:
        yield client


def charged(gateway, kind):
    return gateway.metric(f'enginehouse_gateway_tokens_total{{basis="usage",kind="{kind}",model="{MODEL}"')


def test_a_message_is_answered_and_charged(gateway, client, until):
    before = charged(gateway, "output")
    answer = client.messages.create(model=MODEL, messages=SAY, max_tokens=8, system="Be short.")
    assert answer.content[0].text
    assert (answer.stop_reason, answer.usage.output_tokens) == ("max_tokens", 8)
    until(lambda: charged(gateway, "output") == before + 8, "the charge")


def test_a_streamed_message_is_put_together_and_charged(gateway, client, until):
    before = charged(gateway, "output")
    with client.messages.stream(model=MODEL, messages=SAY, max_tokens=8) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert final.content[0].text == text
    assert final.usage.output_tokens == 8
    until(lambda: charged(gateway, "output") == before + 8, "the charge")


def test_a_tool_is_used(client):
    choice = {"type": "tool", "name": "weather"}
    answer = client.messages.create(model=MODEL, messages=SAY, max_tokens=100, tools=[WEATHER], tool_choice=choice)
    assert answer.stop_reason == "tool_use"
    assert set(answer.content[0].input) == {"city"}


def test_the_tokens_of_a_message_are_counted(client):
    counted = client.messages.count_tokens(model=MODEL, messages=SAY)
    answer = client.messages.create(model=MODEL, messages=SAY, max_tokens=1)
    assert counted.input_tokens == answer.usage.input_tokens


def test_the_models_of_the_key_are_listed(client):
    assert [model.id for model in client.models.list()] == [MODEL, OTHER_MODEL]
    assert client.models.retrieve(OTHER_MODEL).id == OTHER_MODEL


async def test_the_async_client_streams_as_well(gateway, world, client):
    async with (
        anthropic.AsyncAnthropic(api_key=world.acme_key, base_url=gateway.url, max_retries=0) as own,
        own.messages.stream(model=MODEL, messages=SAY, max_tokens=4) as stream,
    ):
        assert "".join([text async for text in stream.text_stream])


def test_a_token_in_the_place_of_a_key_is_taken_as_well(gateway, world, client):
    with anthropic.Anthropic(auth_token=world.acme_key, api_key=None, base_url=gateway.url, max_retries=0) as own:
        assert own.messages.create(model=MODEL, messages=SAY, max_tokens=1).content


def test_leaving_a_stream_frees_the_engine_and_is_charged_for_what_came(gateway, client, engine, until):
    before = charged(gateway, "output")
    asked = {"model": MODEL, "messages": SAY, "max_tokens": 4000, "extra_body": {"ignore_eos": True}}
    with client.messages.stream(**asked) as stream:
        texts = stream.text_stream
        assert next(texts)
        assert next(texts)
    until(engine.is_idle, "the engine is free", 2)
    until(lambda: charged(gateway, "output") >= before + 2, "the charge")


def test_errors_are_the_clients_own_exceptions(client):
    with pytest.raises(anthropic.AuthenticationError) as raised:
        client.with_options(api_key="eh-wrong").messages.create(model=MODEL, messages=SAY, max_tokens=1)
    assert raised.value.body["error"]["type"] == "authentication_error"
    with pytest.raises(anthropic.NotFoundError) as raised:
        client.messages.create(model="nobody-chat", messages=SAY, max_tokens=1)
    assert raised.value.body["error"]["type"] == "not_found_error"
    with pytest.raises(anthropic.BadRequestError) as raised:
        client.messages.create(model=MODEL, messages=SAY, max_tokens=-1)
    assert "max_tokens" in raised.value.body["error"]["message"]
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(model=MODEL, messages=SAY, max_tokens=100_000)  # as the engine says


def test_envoys_own_errors_are_in_anthropics_form_too(gateway, world, client):
    url, headers = f"{gateway.url}/v1/messages?beta=true", {"x-api-key": world.acme_key}
    answer = httpx2.post(url, content=b" " * (8 * 1024 * 1024 + 1), headers=headers)
    assert answer.status_code == 413
    assert answer.json()["error"]["type"] == "request_too_large"


def test_a_used_up_limit_is_a_rate_limit_error(gateway, world, client, engine, until):
    publish(gateway, world, engine, serves=SERVES, requests_per_minute=60)

    def limited():
        try:
            client.messages.create(model=MODEL, messages=SAY, max_tokens=1)
        except anthropic.RateLimitError as error:
            return error

    seen = []
    until(lambda: seen.append(limited()) or seen[-1], "the limit")
    assert seen[-1].body["error"]["type"] == "rate_limit_error"
    assert seen[-1].response.headers["retry-after"] == "1"


def test_a_closed_field_is_refused_with_its_place_and_a_reference_and_without_an_advisory(
    gateway, world, client, engine, until
):
    closed = (ClosedPath(path="multimodal", reference="R-2026-17"),)
    publish(gateway, world, engine, serves=SERVES, closed_paths=closed)
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    asked = [{"role": "user", "content": [{"type": "text", "text": "hi"}, picture]}]

    def refused():
        try:
            client.messages.create(model=MODEL, messages=asked, max_tokens=1)
        except anthropic.BadRequestError as error:
            return error

    seen = []
    until(lambda: seen.append(refused()) or seen[-1], "the closed path")
    message = seen[-1].body["error"]["message"]
    assert "/messages/0/content/1" in message
    assert "R-2026-17" in message
    assert "GHSA" not in message
    assert "CVE" not in message
    label = 'path="multimodal",reference="R-2026-17"'
    assert gateway.metric(f'enginehouse_gateway_closed_field_refusals_total{{model="{MODEL}",{label}') >= 1
    assert client.messages.create(model=MODEL, messages=SAY, max_tokens=1).content


def test_an_engine_that_is_gone_is_an_overloaded_error(gateway, world, client, until):
    snapshot = world.snapshot("127.0.0.1:1")
    arms = tuple(arm.model_copy(update={"serves": SERVES}) for arm in snapshot.routes[0].arms)
    first = snapshot.routes[0].model_copy(update={"arms": arms})
    gateway.publish(snapshot.model_copy(update={"routes": (first, *snapshot.routes[1:])}))

    def lost():
        try:
            client.messages.create(model=MODEL, messages=SAY, max_tokens=1)
        except anthropic.APIStatusError as error:
            return error

    seen = []
    until(lambda: seen.append(lost()) or seen[-1], "no engine")
    assert seen[-1].status_code == 503
    assert json.loads(seen[-1].response.text)["error"]["type"] == "overloaded_error"
