"""A stream that an engine breaks off is an exception in each official client, and never a short answer."""

import json

import httpx2
import pytest

from tests.gateway.late import Late

anthropic = Late("anthropic")
openai = Late("openai")

MODEL = "acme-chat"
SAY = [{"role": "user", "content": "Say hello."}]
ANSWER = {"id": "x", "created": 1, "model": MODEL, "object": "chat.completion.chunk"}
CHUNK = {**ANSWER, "choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
RESPONSE = {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": "a"}
START = {
    "type": "message_start",
    "message": {
        "id": "x", "type": "message", "role": "assistant", "content": [], "model": MODEL, "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 0},
    },
}  # fmt: skip


def event(data, name=""):
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


@pytest.fixture
def breaking(gateway, world, until):
    """An engine that sends these bytes and breaks off."""
    snapshot = world.snapshot(gateway.one.address)
    arm = snapshot.routes[0].arms[0].model_copy(update={"serves": ("chat", "responses", "messages")})
    first = snapshot.routes[0].model_copy(update={"arms": (arm,)})
    gateway.publish(snapshot.model_copy(update={"routes": (first, *snapshot.routes[1:])}))
    kept, gateway.one.breaks_off = gateway.one.first, True
    gateway.one.go_on.set()
    headers = {"x-api-key": world.acme_key, "anthropic-version": "2023-06-01"}
    body = {"model": MODEL, "messages": SAY, "max_tokens": 1}
    ask = lambda: httpx2.post(f"{gateway.url}/v1/messages?beta=true", json=body, headers=headers)  # noqa: E731
    until(lambda: ask().content == b"one", "messages are served")
    yield lambda first: setattr(gateway.one, "first", first)
    gateway.one.first, gateway.one.breaks_off = kept, False
    gateway.one.go_on.clear()


def test_the_version_of_anthropics_api_reaches_the_engine_and_the_key_does_not(gateway, world, breaking):
    head = gateway.one.heads[-1].lower()
    assert head.startswith("post /v1/messages?beta=true ")
    assert "anthropic-version: 2023-06-01" in head
    assert "x-api-key" not in head
    assert world.acme_key not in head


def test_a_broken_chat_raises(gateway, world, breaking):
    breaking(event(CHUNK))
    with openai.OpenAI(api_key=world.acme_key, base_url=f"{gateway.url}/v1", max_retries=0) as client:
        stream = iter(client.chat.completions.create(model=MODEL, messages=SAY, stream=True))
        assert next(stream).choices[0].delta.content == "a"
        with pytest.raises(openai.APIError, match="broke off") as raised:
            list(stream)
    assert raised.value.code == "engine_lost"


def test_a_broken_response_raises(gateway, world, breaking):
    breaking(event(RESPONSE, RESPONSE["type"]))
    with openai.OpenAI(api_key=world.acme_key, base_url=f"{gateway.url}/v1", max_retries=0) as client:
        stream = iter(client.responses.create(model=MODEL, input="x", stream=True))
        assert next(stream).delta == "a"
        with pytest.raises(openai.APIError, match="broke off"):
            list(stream)


def test_a_broken_message_raises(gateway, world, breaking):
    breaking(event(START, START["type"]))
    with (
        anthropic.Anthropic(api_key=world.acme_key, base_url=gateway.url, max_retries=0) as client,
        pytest.raises(anthropic.APIStatusError) as raised,
    ):
        list(client.messages.create(model=MODEL, messages=SAY, max_tokens=5, stream=True))
    assert raised.value.body["error"]["type"] == "api_error"
    assert "broke off" in raised.value.body["error"]["message"]
