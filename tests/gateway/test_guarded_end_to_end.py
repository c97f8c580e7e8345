"""Streams through real Envoy and the guard: limits are told, and an engine that breaks off is an error event."""

import json

import httpx2
import pytest

from fleet.snapshot import GatewayTenant

CHAT = "/v1/chat/completions"
LIMITED = {"tokens_per_minute": 100_000, "requests_per_minute": 500, "concurrent_requests": 1}


@pytest.fixture
def client(gateway, world):
    limited = GatewayTenant(name="acme", **LIMITED)
    snapshot = world.snapshot(gateway.one.address)
    gateway.publish(snapshot.model_copy(update={"tenants": (limited, *snapshot.tenants[1:])}))
    headers = {"authorization": f"Bearer {world.acme_key}"}
    with httpx2.Client(base_url=gateway.url, timeout=10, headers=headers) as client:
        yield client


def chat(**members):
    return {"model": "acme-chat", "messages": [{"role": "user", "content": "the-secret-prompt"}], **members}


def is_limited(client):
    answer = client.post(CHAT, json=chat(max_tokens=5))
    return answer.status_code == 200 and "x-ratelimit-limit-tokens" in answer.headers


def test_a_client_sees_how_its_limits_stand(client, until):
    until(lambda: is_limited(client), "an answer with the limits")
    headers = client.post(CHAT, json=chat(max_tokens=5)).headers
    assert headers["x-ratelimit-limit-tokens"] == "100000"
    assert headers["x-ratelimit-limit-requests"] == "500"
    assert 0 < int(headers["x-ratelimit-remaining-tokens"]) < 100_000
    assert not any(name.startswith("x-gateway") for name in headers)


def test_one_stream_at_a_time_and_its_end_makes_room_even_when_the_client_leaves(gateway, client, until):
    until(lambda: is_limited(client), "the limits")
    with client.stream("POST", CHAT, json=chat(stream=True)) as stream:
        pieces = stream.iter_raw()  # whose end would be the client's
        assert next(pieces).startswith(b"data:")
        refused = client.post(CHAT, json=chat())
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
        pieces.close()
    until(lambda: is_limited(client), "room for the next")
    until(lambda: gateway.one.aborted, "the engine sees that its client left")
    assert gateway.metric("enginehouse_gateway_requests_ended_total") > 0


def test_an_engine_that_breaks_off_is_an_error_event_and_the_usage_was_asked_for(gateway, client, until):
    until(lambda: is_limited(client), "the limits")
    gateway.one.breaks_off = True
    try:
        with client.stream("POST", CHAT, json=chat(stream=True)) as stream:
            pieces = stream.iter_raw()
            got = next(pieces)
            gateway.one.go_on.set()
            got += b"".join(pieces)
    finally:
        gateway.one.breaks_off = False
        gateway.one.go_on.clear()
    last = json.loads(got.split(b"\n\n")[-2].removeprefix(b"data: "))
    assert last["error"]["code"] == "engine_lost"
    sent = json.loads(gateway.one.bodies[-1])
    assert sent["stream_options"] == {"include_usage": True}
    assert 0 < sent["max_tokens"] <= 100_000
