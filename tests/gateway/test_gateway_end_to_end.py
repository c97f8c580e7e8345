"""Requests through real Envoy and the decision service to fake engines."""

import http.client
import json
import os
import signal
import socket
import stat
from pathlib import Path

import httpx2
import pytest

from gateway.envoy_listener import INTERNAL_NAMES

CHAT = "/v1/chat/completions"


def bearer(key):
    return {"authorization": f"Bearer {key}"}


def chat(model, stream=False, content="the-secret-prompt"):
    return {"model": model, "stream": stream, "messages": [{"role": "user", "content": content}]}


@pytest.fixture
def client(gateway):
    with httpx2.Client(base_url=gateway.url, timeout=10) as client:
        yield client


def error_of(answer):
    assert answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def raw(gateway, request):
    """Bytes on the wire, for what no client library would send."""
    port = int(gateway.settings["listen_port"])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, answer.read()


def test_a_chat_reaches_the_engine_without_the_key(gateway, client, world):
    answer = client.post(CHAT, json=chat("acme-chat"), headers={**bearer(world.acme_key), "cookie": "a=b"})
    assert (answer.status_code, answer.content) == (200, b"one")
    head = gateway.one.heads[-1].lower()
    assert world.acme_key not in head
    assert not any(name in head for name in ("authorization", "cookie", "x-gateway-", "x-envoy-", "x-forwarded-"))
    assert answer.headers["x-request-id"] in head
    assert json.loads(gateway.one.bodies[-1]) == chat("acme-chat")


def test_headers_that_name_a_tenant_an_arm_or_an_engine_reach_no_engine(gateway, client, world):
    names = (*INTERNAL_NAMES, "x-prefiller-host-port", "x-data-parallel-host-port", "x-smg-target-worker")
    forged = dict.fromkeys(names, gateway.two.address)
    answer = client.post(CHAT, json=chat("acme-chat"), headers={**bearer(world.acme_key), **forged})
    assert answer.status_code == 200
    head = gateway.one.heads[-1].lower()
    assert not any(f"{name}:" in head for name in ("\r\n" + one for one in names))


def test_a_wrong_key_and_no_key_are_401(client):
    answer = client.post(CHAT, json=chat("acme-chat"), headers=bearer("eh-wrong"))
    assert (answer.status_code, error_of(answer)["code"]) == (401, "invalid_api_key")
    assert answer.headers["www-authenticate"] == "Bearer"
    answer = client.post(CHAT, json=chat("acme-chat"))
    assert (answer.status_code, error_of(answer)["code"]) == (401, "missing_api_key")


def test_the_model_of_another_tenant_is_404_like_one_that_nobody_has(client, world):
    theirs = client.post(CHAT, json=chat("globex-chat"), headers=bearer(world.acme_key))
    nobodys = client.post(CHAT, json=chat("nobody-chat"), headers=bearer(world.acme_key))
    assert theirs.status_code == nobodys.status_code == 404
    assert error_of(theirs)["code"] == "model_not_found"
    assert theirs.text.replace("globex", "nobody") == nobodys.text


def test_the_models_are_those_of_the_tenant(client, world):
    answer = client.get("/v1/models", headers=bearer(world.globex_key))
    assert [card["id"] for card in answer.json()["data"]] == ["both-chat", "globex-chat"]
    assert client.get("/v1/models/both-chat", headers=bearer(world.globex_key)).json()["id"] == "both-chat"
    assert client.get("/v1/models/acme-chat", headers=bearer(world.globex_key)).status_code == 404
    assert client.get("/v1/models").status_code == 401


def test_a_stream_passes_byte_by_byte(gateway, client, world):
    gateway.one.go_on.clear()
    with client.stream("POST", CHAT, json=chat("acme-chat", stream=True), headers=bearer(world.acme_key)) as answer:
        parts = answer.iter_raw()
        assert next(parts) == gateway.one.first  # before the engine goes on
        gateway.one.go_on.set()
        assert b"".join(parts) == gateway.one.last


@pytest.mark.parametrize("count", [1, 2])
def test_a_destination_that_a_client_names_has_no_effect(gateway, client, world, count):
    before = len(gateway.two.heads)
    named = [("X-Gateway-Destination-Endpoint", gateway.two.address)] * count
    headers = [*bearer(world.acme_key).items(), *named, ("x-envoy-upstream-rq-timeout-ms", "1")]
    answer = client.post(CHAT, json=chat("acme-chat"), headers=headers)
    assert (answer.status_code, answer.content) == (200, b"one")
    assert len(gateway.two.heads) == before
    assert "x-gateway" not in gateway.one.heads[-1].lower()


def test_a_client_that_goes_away_aborts_the_engine(gateway, client, world, until):
    gateway.one.go_on.clear()
    before = gateway.one.aborted
    with client.stream("POST", CHAT, json=chat("acme-chat", stream=True), headers=bearer(world.acme_key)) as answer:
        assert next(answer.iter_raw()) == gateway.one.first
    until(lambda: gateway.one.aborted == before + 1, "the engine sees the abort", 2)


@pytest.mark.parametrize(
    "target",
    [
        "//metrics",
        "/%6detrics",
        "/v1/../metrics",
        "/v1/%2e%2e/metrics",
        "/metrics",
        "/v1/load_lora_adapter",
        "/update_weights",
        "/invocations",
        "/v1/models/../../metrics",
        "/v1/chat/completions/",
        "/V1/chat/completions",
    ],
)
def test_what_is_not_public_is_404_in_every_spelling(gateway, world, target):
    before = len(gateway.one.heads)
    head = (
        f"POST {target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {world.acme_key}\r\ncontent-length: 2\r\n\r\n{{}}"
    )
    status, body = raw(gateway, head.encode())
    assert status == 404, body
    assert json.loads(body)["error"]["code"] in {"unknown_path", "model_not_found"}
    assert len(gateway.one.heads) == before


@pytest.mark.parametrize("target", ["/v1%2fmodels", "/v1/chat%5Ccompletions", "/v1/chat/completions%00"])
def test_an_escaped_slash_is_refused_before_anything(gateway, world, target):
    head = f"GET {target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {world.acme_key}\r\n\r\n"
    status, body = raw(gateway, head.encode())
    assert (status, json.loads(body)["error"]["type"]) == (400, "invalid_request_error")


def test_a_path_without_a_key_is_401_whether_or_not_it_exists(client):
    assert client.get("/metrics").status_code == 401


def test_a_body_that_is_too_large_is_413(client, world):
    answer = client.post(CHAT, content=b" " * (8 * 1024 * 1024 + 1), headers=bearer(world.acme_key))
    assert (answer.status_code, error_of(answer)["code"]) == (413, "body_too_large")


def test_bad_json_and_a_missing_model_are_400(client, world):
    answer = client.post(CHAT, content=b"{", headers=bearer(world.acme_key))
    assert (answer.status_code, error_of(answer)["code"]) == (400, "invalid_json")
    answer = client.post(CHAT, json={"messages": []}, headers=bearer(world.acme_key))
    assert (answer.status_code, error_of(answer)["param"]) == (400, "model")


def test_an_engine_that_is_gone_is_503_and_never_another_engine(gateway, client, world, until):
    """Envoy knows both engines; the one that was decided does not answer."""
    dead = "127.0.0.1:1"
    good = world.snapshot(gateway.one.address)
    elsewhere = good.routes[0].model_copy(update={"arms": (world.arm(dead, name="elsewhere"),)})
    gateway.publish(good.model_copy(update={"routes": (elsewhere, *good.routes[1:])}))
    ask = lambda: client.post(CHAT, json=chat("acme-chat"), headers=bearer(world.acme_key))  # noqa: E731
    until(lambda: ask().status_code == 503, "the dead engine is decided")
    assert error_of(ask())["code"] == "no_endpoint"
    assert client.post(CHAT, json=chat("both-chat"), headers=bearer(world.acme_key)).content == b"one"
    gateway.publish(world.snapshot(dead, gateway.one.address))
    until(lambda: ask().status_code == 200, "the second of the ordered endpoints answers")
    assert [ask().content for _ in range(4)] == [b"one"] * 4
    gateway.publish(good)


def test_no_engine_at_all_is_503_with_the_reason(gateway, client, world, until):
    gateway.publish(world.snapshot(gateway.one.address, requests_per_minute=None, output_filter="nobody-knows"))
    ask = lambda: client.post(CHAT, json=chat("acme-chat"), headers=bearer(world.acme_key))  # noqa: E731
    until(lambda: ask().status_code == 503, "the filter is asked for")
    assert error_of(ask())["code"] == "output_filter_unavailable"
    gateway.publish(world.snapshot(gateway.one.address))
    until(lambda: ask().status_code == 200, "the filter is no longer asked for")


def test_a_used_up_limit_is_429_with_the_time_to_wait(gateway, client, world, until):
    gateway.publish(world.snapshot(gateway.one.address, requests_per_minute=1))
    ask = lambda: client.post(CHAT, json=chat("acme-chat"), headers=bearer(world.acme_key))  # noqa: E731
    until(lambda: ask().status_code == 429, "the limit is reached")
    answer = ask()
    assert error_of(answer)["type"] == "rate_limit_error"
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert answer.headers["x-ratelimit-limit-requests"] == "1"
    gateway.publish(world.snapshot(gateway.one.address))
    until(lambda: ask().status_code == 200, "the limit is gone")


def test_endpoints_change_within_a_second_while_a_stream_goes_on(gateway, client, world, until):
    gateway.one.go_on.clear()
    with client.stream("POST", CHAT, json=chat("acme-chat", stream=True), headers=bearer(world.acme_key)) as answer:
        parts = answer.iter_raw()
        assert next(parts) == gateway.one.first
        gateway.publish(world.snapshot(gateway.two.address))
        with httpx2.Client(base_url=gateway.url) as other:
            ask = lambda: other.post(CHAT, json=chat("acme-chat"), headers=bearer(world.acme_key))  # noqa: E731
            answers = []
            until(lambda: answers.append(ask()) or answers[-1].content == b"two", "the other engine", 1)
        assert {a.status_code for a in answers} == {200}  # none was dropped on the way
        gateway.one.go_on.set()
        assert b"".join(parts) == gateway.one.last
    gateway.publish(world.snapshot(gateway.one.address))
    until(lambda: client.post(CHAT, json=chat("acme-chat"), headers=bearer(world.acme_key)).content == b"one", "back")


def test_a_stream_lives_on_when_envoy_forgets_its_endpoint(gateway, client, world, until):
    """The retiring time is over: the endpoint leaves Envoy's file, the stream does not notice."""
    gateway.one.go_on.clear()
    file = Path(str(gateway.settings["state_dir"])) / "endpoints" / "endpoints.json"
    kept = file.read_bytes()
    with client.stream("POST", CHAT, json=chat("acme-chat", stream=True), headers=bearer(world.acme_key)) as answer:
        parts = answer.iter_raw()
        assert next(parts) == gateway.one.first
        draft = file.with_name("draft")
        draft.write_bytes(kept.replace(str(gateway.one.port).encode(), str(gateway.two.port).encode()))
        draft.replace(file)
        admin = f"{gateway.ready['admin_url']}/clusters"
        until(lambda: f"engines::{gateway.one.address}" not in httpx2.get(admin).text, "Envoy forgets it")
        gateway.one.go_on.set()
        assert b"".join(parts) == gateway.one.last
    draft.write_bytes(kept)
    draft.replace(file)
    until(lambda: f"engines::{gateway.one.address}" in httpx2.get(admin).text, "Envoy knows it again")


def test_a_restarted_gateway_serves_from_disk_without_the_control_plane(gateway, client, world, until):
    snapshot = Path(str(gateway.settings["state_dir"])) / "snapshot.json"
    until(snapshot.exists, "the snapshot on disk")
    assert stat.S_IMODE(snapshot.stat().st_mode) == 0o600
    assert gateway.end(gateway.decision) == 0
    assert not Path(str(gateway.settings["socket_path"])).exists()
    url, gateway.settings["control_plane_url"] = gateway.settings["control_plane_url"], "http://127.0.0.1:1"
    gateway.start_decision()
    answer = client.post(CHAT, json=chat("acme-chat"), headers=bearer(world.acme_key))
    assert (answer.status_code, answer.content) == (200, b"one")
    until(lambda: gateway.metric("enginehouse_gateway_sync_failures_total") >= 1, "a failed attempt is counted")
    assert gateway.metric("enginehouse_gateway_snapshot_age_seconds") >= 0
    assert gateway.end(gateway.decision) == 0
    gateway.settings["control_plane_url"] = url
    gateway.start_decision()


def test_the_access_log_names_who_and_where_and_nothing_of_the_content(gateway, client, world, until):
    before = len(gateway.access_log)
    client.post(f"{CHAT}?q=the-secret-query", json=chat("acme-chat"), headers=bearer(world.acme_key))
    until(lambda: len(gateway.access_log) > before, "a line of the access log")
    line = gateway.access_log[-1]
    assert (line["tenant"], line["model"], line["deployment"]) == ("acme", "acme-chat", "chat")
    assert (line["status"], line["path"], line["endpoint"]) == (200, CHAT, gateway.one.address)
    logs = json.dumps(gateway.access_log) + gateway.gateway_log + (gateway.folder / "envoy.log").read_text()
    for secret in (world.acme_key, world.globex_key, "the-secret", "eh-wrong", "reader-token"):
        assert secret not in logs


def test_the_metrics_count_by_tenant_model_and_outcome(gateway, client, world):
    name = 'enginehouse_gateway_requests_total{model="both-chat",outcome="allowed",tenant="globex"}'
    before = gateway.metric(name)
    client.post(CHAT, json=chat("both-chat"), headers=bearer(world.globex_key))
    assert gateway.metric(name) == before + 1
    assert gateway.metric('enginehouse_gateway_requests_waiting{model="both-chat"}') == 0


def test_without_the_decision_service_envoy_denies(gateway, client, world):
    """The last test of this gateway: its service is killed."""
    before = len(gateway.one.heads)
    gateway.end(gateway.decision, signal.SIGKILL)
    answer = client.post(CHAT, json=chat("acme-chat"), headers=bearer(world.acme_key))
    assert (answer.status_code, error_of(answer)["code"]) == (503, "internal_error")
    assert client.get("/v1/models", headers=bearer(world.acme_key)).status_code == 503
    assert len(gateway.one.heads) == before
    os.unlink(str(gateway.settings["ready_file"]))
    gateway.start_decision()  # over the socket that the killed one left
    assert client.post(CHAT, json=chat("acme-chat"), headers=bearer(world.acme_key)).content == b"one"
