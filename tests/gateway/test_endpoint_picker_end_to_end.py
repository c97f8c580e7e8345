"""The gateway as the endpoint picker of somebody else's Envoy: answers, refusals, budgets, and every end."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx2
import pytest

from fleet.output_policy import FilterPolicy, NamedFilter, OwnPattern
from fleet.snapshot import GatewayTenant
from tests.free_ports import free_port
from tests.gateway.certificates import certificate
from tests.gateway.conftest import end_gateway, make_gateway
from tests.gateway.gaie import proxy
from tests.gateway.simulated import MODEL, OTHER_MODEL, simulated_engine

CHAT = "/v1/chat/completions"
FORCED = {"structured_outputs": {"regex": "the secret is out"}, "max_tokens": 50}
SLOW = ("--decode-seconds", "0.03")


@dataclass
class Pool:
    """Two engines, the gateway without an Envoy of its own, and the other gateway's Envoy before both."""

    gateway: object
    engines: tuple
    proxy: object
    world: object

    def ask(self, text="hi", key=None, headers=None, **body):
        chat = {"model": MODEL, "messages": [{"role": "user", "content": text}], "max_tokens": 5, **body}
        return httpx2.post(
            f"{self.proxy.url}{CHAT}", json=chat, headers=self.headers(key) | (headers or {}), timeout=30
        )

    def stream(self, **body):
        chat = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True, **body}
        return httpx2.stream("POST", f"{self.proxy.url}{CHAT}", json=chat, headers=self.headers(), timeout=30)

    def headers(self, key=None):
        return {"authorization": f"Bearer {key or self.world.acme_key}"}

    def snapshot(self, *, limits=None, filters=(), **route):
        made = self.world.snapshot(*(engine.address for engine in self.engines), **route)
        acme = GatewayTenant(name="acme", **(limits or {}))
        return made.model_copy(update={"tenants": (acme, *made.tenants[1:]), "output_filters": filters})

    def records(self):
        return self.gateway.control_plane.usage

    def is_idle(self):
        parts = [f'enginehouse_gateway_requests_held{{part="{part}"}}' for part in ("admitted", "at_engines")]
        return all(self.gateway.metric(part) == 0 for part in parts)


def started(folder, world, *, is_encrypted=False):
    """A gateway that listens as a picker."""
    made = make_gateway(folder, world)
    picker = {"port": free_port()}
    if is_encrypted:
        file = str(certificate(folder, "picker"))
        picker |= {"tls_cert_file": file, "tls_key_file": file}
    made.settings |= {"endpoint_picker": picker, "drain_seconds": 8, "usage": {"batch_seconds": 0.05}}
    return made


@pytest.fixture(scope="module")
def pool(tmp_path_factory, world):
    folder = tmp_path_factory.mktemp("pool")
    made = started(folder, world, is_encrypted=True)
    try:
        with simulated_engine(*SLOW) as one, simulated_engine(*SLOW) as two:
            made.control_plane.snapshot = world.snapshot(one.address, two.address)
            made.start_decision()
            port = made.settings["endpoint_picker"]["port"]
            with proxy(folder / "proxy", port, (one.address, two.address), is_encrypted=True) as envoy:
                yield Pool(made, (one, two), envoy, world)
    finally:
        end_gateway(made)


@pytest.fixture(autouse=True)
def settled(pool, until):
    """Each test starts with the plain snapshot and leaves nothing held."""
    until(lambda: pool.proxy.sees_a_picker, "a healthy picker")
    yield
    until(pool.is_idle, "nothing held")
    until(lambda: all(engine.is_idle() for engine in pool.engines), "idle engines")


def use(pool, until, **stated):
    """Have the gateway use a snapshot of the pool."""
    adopt(pool, until, pool.snapshot(**stated))


def adopt(pool, until, snapshot):
    pool.gateway.publish(snapshot)
    kept = pool.gateway.folder / "state" / "snapshot.json"
    wanted = snapshot.model_dump_json().encode()
    until(lambda: kept.exists() and kept.read_bytes() == wanted, "the snapshot in use")


def new_record(pool, until, since):
    """The record of the one request that was made since then; those of others may still be on their way."""

    def found():
        return [record for record in pool.records() if record["admitted_unix_seconds"] >= since]

    until(found, "a usage record")
    return found()[0]


def moment():
    """Records say when their requests came to a millisecond."""
    return round(time.time(), 3) - 0.001


def test_a_whole_answer_passes_and_its_usage_settles(pool, until):
    since = moment()
    answer = pool.ask()
    assert answer.status_code == 200, answer.text
    usage = answer.json()["usage"]
    assert answer.headers["x-served-model"] == MODEL
    record = new_record(pool, until, since)
    assert (record["input_tokens"], record["output_tokens"]) == (usage["prompt_tokens"], usage["completion_tokens"])
    assert (record["basis"], record["end"], record["status"], record["tenant"]) == ("usage", "whole", 200, "acme")


def test_a_stream_has_its_usage_asked_for_read_and_taken_out(pool, until):
    since = moment()
    with pool.stream(max_tokens=6) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        body = answer.read()
    assert b"usage" not in body
    assert body.endswith(b"data: [DONE]\n\n")
    record = new_record(pool, until, since)
    assert (record["output_tokens"], record["basis"], record["end"]) == (6, "usage", "whole")
    with pool.stream(max_tokens=6, stream_options={"include_usage": True}) as answer:
        body = answer.read()
    stated = [json.loads(line[6:]) for line in body.splitlines() if b'"usage":{' in line]
    assert [found["usage"]["completion_tokens"] for found in stated] == [6]


@pytest.mark.parametrize(
    ("key", "model", "status", "code"),
    [("nobody", MODEL, 401, "invalid_api_key"), (None, "globex-chat", 404, "model_not_found")],
)
def test_a_refusal_is_in_openais_form(pool, key, model, status, code):
    answer = pool.ask(key=key, model=model)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"


def test_paths_of_engines_and_websockets_are_not_there(pool):
    for path in ("/metrics", "/v1/load_lora_adapter", "/v1/%63hat/completions", "/v1/chat/ws"):
        answer = httpx2.get(f"{pool.proxy.url}{path}", headers=pool.headers())
        assert answer.status_code == 404, path


def test_models_are_listed_without_an_engine(pool):
    answer = httpx2.get(f"{pool.proxy.url}/v1/models", headers=pool.headers())
    assert [card["id"] for card in answer.json()["data"]] == [MODEL, OTHER_MODEL]


def test_a_budget_is_settled_by_usage_and_then_used_up(pool, until):
    use(pool, until, limits={"tokens_per_minute": 200})
    first = pool.ask(max_tokens=5).json()["usage"]["total_tokens"]
    left = int(pool.ask(max_tokens=5).headers["x-ratelimit-remaining-tokens"])
    assert 200 - first - 60 < left <= 200 - first
    refused = pool.ask(max_tokens=140)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert int(refused.headers["retry-after"]) > 0
    assert refused.headers["x-ratelimit-limit-tokens"] == "200"
    use(pool, until)


def test_a_client_that_leaves_aborts_the_engine_and_pays_for_what_it_got(pool, until):
    since = moment()
    with pool.stream(max_tokens=2000, ignore_eos=True) as answer:
        next(chunk for chunk in answer.iter_bytes() if b"content" in chunk)
    record = new_record(pool, until, since)
    assert (record["end"], record["basis"]) == ("client_left", "counted")
    assert 0 < record["output_tokens"] < 2000


def test_clients_that_leave_at_any_moment_leave_nothing_held(pool, until):
    """Before the answer, in it, or not at all, with a route that lets six go at once, so that others wait."""
    use(pool, until, concurrent_requests=6)

    def visit(number):
        try:
            body = {"max_tokens": 12, "ignore_eos": True, "messages": [{"role": "user", "content": f"prompt {number}"}]}
            chat = {"model": MODEL, "stream": True, **body}
            timeout = httpx2.Timeout(30, read=(0.05, 0.2, 30)[number % 3])
            url = f"{pool.proxy.url}{CHAT}"
            with httpx2.stream("POST", url, json=chat, headers=pool.headers(), timeout=timeout) as answer:
                for piece, _ in enumerate(answer.iter_bytes()):
                    if piece == number % 7 + 1:
                        break
        except httpx2.TimeoutException:
            pass
        return True

    with ThreadPoolExecutor(16) as clients:
        assert all(clients.map(visit, range(64)))
    until(pool.is_idle, "nothing held")
    assert pool.ask().status_code == 200
    use(pool, until)


def test_only_endpoints_of_the_subset_are_picked(pool):
    for engine in pool.engines * 2:
        before = engine.metric("vllm:request_success_total")
        answer = pool.ask(headers={"x-test-subset": engine.address})
        assert answer.status_code == 200
        assert engine.metric("vllm:request_success_total") == before + 1
    assert pool.ask(headers={"x-test-subset": "127.0.0.1"}).status_code == 200
    refused = pool.ask(headers={"x-test-subset": "10.0.0.9:8000"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "no_endpoint")


def test_words_of_the_gateway_from_a_client_have_no_effect(pool, until):
    dead = f"127.0.0.1:{free_port()}"
    own = {
        "x-gateway-destination-endpoint": dead,
        "x-gateway-inference-fairness-id": "globex",
        "x-gateway-inference-objective": "urgent",
        "x-gateway-model-name-rewrite": "globex-chat",
        "x-gateway-tenant": "globex",
    }
    since = moment()
    answer = pool.ask(headers=own)
    assert (answer.status_code, answer.json()["model"]) == (200, MODEL)
    assert new_record(pool, until, since)["tenant"] == "acme"


@pytest.mark.parametrize("stream", [False, True])
def test_an_output_filter_sees_to_the_answer(pool, until, stream):
    use(pool, until, filters=(named("mask"),), output_filter="named")
    if stream:
        with pool.stream(**FORCED) as answer:
            body = answer.read().decode()
        events = [json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {")]
        text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events)
        assert body.endswith("data: [DONE]\n\n")
    else:
        text = pool.ask(**FORCED).json()["choices"][0]["message"]["content"]
    assert text == "the [WORD] is out"
    use(pool, until)


def test_a_whole_answer_that_is_blocked_is_400_and_charged(pool, until):
    use(pool, until, filters=(named("block"),), output_filter="named")
    since = moment()
    answer = pool.ask(**FORCED)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "content_filter")
    assert "secret" not in answer.text
    record = new_record(pool, until, since)
    assert (record["basis"], record["end"]) == ("usage", "whole")
    use(pool, until)


def named(mode):
    pattern = OwnPattern(name="word", pattern="secret", mode=mode)
    return NamedFilter(name="named", policy=FilterPolicy(classes={}, patterns=(pattern,)))


def test_an_endpoint_that_can_not_be_had_is_passed_over_and_left_out_since_the_proxy_says_who_served(
    pool, until, tmp_path
):
    dead = f"127.0.0.1:{free_port()}"
    adopt(pool, until, pool.world.snapshot(dead, pool.engines[0].address))
    port = pool.gateway.settings["endpoint_picker"]["port"]
    with proxy(tmp_path / "other", port, (dead, pool.engines[0].address), is_encrypted=True) as envoy:
        until(lambda: envoy.sees_a_picker, "a healthy picker")
        other = Pool(pool.gateway, pool.engines, envoy, pool.world)
        assert other.ask(headers={"x-test-subset": dead}).status_code == 503
        for number in range(60):
            answer = other.ask(text=f"prompt {number}", max_tokens=1)
            assert answer.status_code == 200, answer.text
            if pool.gateway.metric("enginehouse_gateway_endpoints_ejected") == 1:
                break
        else:
            pytest.fail("the endpoint that nobody can connect to is picked on and on")
    use(pool, until)


def test_an_engine_that_breaks_off_ends_the_request_and_its_stream_is_no_clean_end(pool, until, tmp_path):
    with simulated_engine(*SLOW) as engine:
        adopt(pool, until, pool.world.snapshot(engine.address))
        port = pool.gateway.settings["endpoint_picker"]["port"]
        with proxy(tmp_path / "other", port, (engine.address,), is_encrypted=True) as envoy:
            until(lambda: envoy.sees_a_picker, "a healthy picker")
            other = Pool(pool.gateway, (engine,), envoy, pool.world)
            since = moment()
            with other.stream(max_tokens=2000, ignore_eos=True) as answer:
                pieces = answer.iter_bytes()
                next(pieces)
                os.kill(engine.process.pid, signal.SIGKILL)
                with pytest.raises(httpx2.RemoteProtocolError):
                    list(pieces)
            record = new_record(pool, until, since)
            assert record["basis"] == "counted"
            assert 0 < record["output_tokens"] < 2000
            until(pool.is_idle, "nothing held")
    use(pool, until)
