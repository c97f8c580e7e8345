"""What the gateways get: routes by model name, arms by identity, and an answer as soon as something changed."""

import threading
import time

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from control_plane.records import EndpointRecord, Phase, Route, StoredDeployment
from control_plane.services.route_table import routes_of
from fleet.snapshot import GatewaySnapshot

PATH = "/v1/gateway/snapshot"
TENANTS = st.lists(st.sampled_from(["acme", "globex", "initech"]), unique=True).map(tuple)


def deployment(name, model, tenants=("acme",), output_filter="none", endpoints=(), engine="vllm", flags=None, **spec):
    spec |= {"engine": {"flags": flags or {}}} if "hosted" not in spec else {}
    route, document = Route(model, tenants, output_filter), {"spec": spec}
    return StoredDeployment(name, 1, document, f"id-{name}", engine, "k", route, None, "", "", Phase.PENDING, endpoints)


@given(members=st.lists(st.tuples(TENANTS, st.sampled_from(["none", "pii"])), min_size=1, max_size=4))
def test_a_shared_model_name_admits_only_whom_every_deployment_admits(members):
    stored = [deployment(f"d{n}", "chat", tenants, chosen) for n, (tenants, chosen) in enumerate(members)]
    (route,) = routes_of(stored)
    assert all(set(route.tenants) <= set(tenants) for tenants, _ in members)
    assert (route.output_filter == "pii") is any(chosen == "pii" for _, chosen in members)
    assert len(route.arms) == len(members)


def test_an_arm_whose_engines_all_drain_has_no_weight():
    endpoints = (EndpointRecord("127.0.0.1:1", "old", True), EndpointRecord("127.0.0.1:2", "id-a"))
    (route,) = routes_of([deployment("a", "chat", endpoints=endpoints)])
    assert {arm.identity: arm.weight for arm in route.arms} == {"old": 0.0, "id-a": 1.0}


@given(
    ready=st.lists(st.integers(0, 4), min_size=1, max_size=4),
    draining=st.integers(0, 3),
    weight=st.floats(0, 100, allow_subnormal=False),
)
def test_identities_of_one_deployment_share_its_weight(ready, draining, weight):
    endpoints = tuple(
        EndpointRecord(f"10.0.{n}.{m}:1", f"id-{n}") for n, count in enumerate(ready) for m in range(count)
    )
    endpoints += tuple(EndpointRecord(f"10.1.0.{n}:1", "old", True) for n in range(draining))
    settings = {"chat": {"arms": {"a": {"weight": weight}}}}
    (route,) = routes_of([deployment("a", "chat", endpoints=endpoints)], settings)
    total = sum(arm.weight for arm in route.arms)
    is_served = any(ready) or not draining
    assert total == pytest.approx(weight if is_served else 0)
    assert all(arm.weight == 0 for arm in route.arms if arm.identity == "old")


def test_a_shadow_is_no_arm_of_its_route():
    members = [deployment("a", "chat"), deployment("b", "chat")]
    (route,) = routes_of(members, {"chat": {"shadow": {"deployment": "b", "share": 0.25}}})
    assert [arm.deployment for arm in route.arms] == ["a"]
    assert (route.shadow.arm.deployment, route.shadow.share) == ("b", 0.25)
    (alone,) = routes_of(members[:1], {"chat": {"shadow": {"deployment": "b", "share": 0.25}}})
    assert alone.shadow is None


@pytest.mark.parametrize(
    ("engine", "flags", "takes"),
    [
        ("vllm", {"--scheduling-policy": "priority"}, True),
        ("vllm", {"--scheduling-policy": "fcfs"}, False),
        ("sglang", {"--enable-priority-scheduling": True}, True),
        ("sglang", {"--scheduling-policy": "priority"}, False),
        ("another", {}, False),
    ],
)
def test_an_engine_takes_priorities_that_was_started_to(engine, flags, takes):
    (route,) = routes_of([deployment("a", "chat", engine=engine, flags=flags)])
    assert route.arms[0].takes_priority is takes


@pytest.mark.parametrize(
    ("config", "address"),
    [
        ('{"publisher":"zmq","endpoint":"tcp://*:5557"}', "tcp://{host}:5557"),
        (
            '{"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5558"}',
            "tcp://{host}:5557,tcp://{host}:5558",
        ),
        ('{"publisher":"zmq","endpoint":"tcp://10.0.0.1:5557"}', None),
        ('{"publisher":"null","endpoint":"tcp://*:5557"}', None),
        ('{"publisher":"zmq","endpoint":["x"]}', None),
        ('{"publisher":"zmq"}', None),
        ("not json", None),
        ("[]", None),
        (True, None),
    ],
)
def test_where_an_engine_publishes_is_read_from_its_flag(config, address):
    (route,) = routes_of([deployment("a", "chat", flags={"--kv-events-config": config})])
    assert route.arms[0].kv_events == address


@pytest.mark.parametrize(
    ("engine", "parts", "address", "ranks"),
    [
        ("vllm", {}, "tcp://{host}:5557,tcp://{host}:5657", 1),
        ("sglang", {}, "tcp://{host}:5557,tcp://{host}:5657", 1),
        ("lmdeploy", {}, None, 1),
        ("vllm", {"parallelism": {"data": 4}}, "tcp://{host}:5557,tcp://{host}:5657", 4),
        ("vllm", {"flags": {"--data-parallel-size": 2}}, "tcp://{host}:5557,tcp://{host}:5657", 2),
        ("vllm", {"flags": {"--data-parallel-size": "many"}}, "tcp://{host}:5557,tcp://{host}:5657", 1),
        ("vllm", {"flags": {"--kv-events-config": "{}"}}, None, 1),
    ],
)
def test_an_arm_has_the_address_that_its_engines_were_given(engine, parts, address, ranks):
    flags = parts.get("flags", {})
    parallelism = parts.get("parallelism", {})
    made = deployment("a", "chat", engine=engine, flags=flags, features={"kv_events": "zmq"}, parallelism=parallelism)
    (route,) = routes_of([made])
    assert (route.arms[0].kv_events, route.arms[0].kv_ranks) == (address, ranks)
    (said,) = routes_of([made], {"chat": {"arms": {"a": {"kv_events": "tcp://{host}:7000"}}}})
    assert said.arms[0].kv_events == "tcp://{host}:7000"


@pytest.mark.parametrize(
    ("workload", "served"),
    [("embedding", ("embedding", "tokenize")), ("rerank", ("rerank",)), ("speech", ("transcription",)), ("chat", ())],
)
def test_an_arm_serves_what_its_workload_is(workload, served):
    (route,) = routes_of([deployment("a", "chat", engine="lmdeploy", workload=workload)])
    assert route.arms[0].serves == served
    (said,) = routes_of(
        [deployment("a", "chat", workload=workload)], {"chat": {"arms": {"a": {"serves": ["messages"]}}}}
    )
    assert said.arms[0].serves == ("messages",)


@pytest.mark.parametrize(
    ("scaling", "waits"),
    [({}, False), ({"min": 1}, False), ({"min": 0}, True), ({"min": 1, "idle": "scale-to-zero"}, True)],
)
def test_requests_wait_for_engines_that_may_sleep(scaling, waits):
    (route,) = routes_of([deployment("a", "chat", scaling=scaling)])
    assert route.queue.waits_without_engine is waits
    (said,) = routes_of([deployment("a", "chat", scaling=scaling)], {"chat": {"queue": {"max_waiting": 7}}})
    assert (said.queue.max_waiting, said.queue.waits_without_engine) == (7, waits)


def test_an_arm_that_writes_text_serves_what_its_engine_is_known_to_take():
    (route,) = routes_of([deployment("a", "chat", engine="vllm", workload="chat")])
    assert route.arms[0].serves == ("chat", "completion", "responses", "messages", "tokenize", "count-tokens")


def test_somebody_elses_engine_stands_in_the_place_of_endpoints():
    hosted = {"name": "groq", "endpoint": "https://api.example.com/v1", "api_key_ref": "groq-key", "model": "m"}
    settings = {"chat": {"arms": {"a": {"requests_per_minute": 30}}}}
    (route,) = routes_of([deployment("a", "chat", hosted=hosted)], settings)
    (arm,) = route.arms
    assert (arm.hosted.url, arm.hosted.api_key_ref, arm.hosted.requests_per_minute, arm.weight) == (
        "https://api.example.com/v1",
        "groq-key",
        30,
        1.0,
    )


def test_a_hosted_engine_that_cannot_be_used_takes_nobody_else_with_it():
    hosted = {"name": "groq", "endpoint": "https://user:word@example.com/v1", "api_key_ref": "k", "model": "m"}
    with structlog.testing.capture_logs() as logs:
        first, second = routes_of([deployment("a", "chat", hosted=hosted), deployment("b", "other")])
    assert (first.arms[0].hosted, len(second.arms)) == (None, 1)
    assert (logs[0]["deployment"], logs[0]["fields"]) == ("a", ["url"])
    assert "word" not in repr(logs)


def test_the_longest_answer_is_that_of_the_longest_engine():
    members = [
        deployment("a", "chat", batch={"max_model_len": 10}),
        deployment("b", "chat", batch={"max_model_len": 20}),
    ]
    assert routes_of(members)[0].max_output_tokens == 20
    assert routes_of([*members, deployment("c", "chat")])[0].max_output_tokens is None


def test_a_snapshot_is_sent_once_for_each_change(world):
    first = world.get(PATH)
    etag = first.headers["etag"]
    assert GatewaySnapshot.model_validate_json(first.content).etag == etag
    assert world.get(PATH, headers={"If-None-Match": etag}).status_code == 304
    world.put(world.pinned())
    changed = world.get(PATH, headers={"If-None-Match": etag})
    assert changed.status_code == 200
    (route,) = changed.json()["routes"]
    assert (route["model"], route["tenants"], route["arms"][0]["endpoints"]) == ("chat", ["acme"], [])


def test_a_waiting_request_answers_when_something_changes(world):
    etag = world.get(PATH).headers["etag"]
    answers = []

    def wait():
        headers = {"If-None-Match": etag}
        answers.append(world.get(PATH, params={"wait_seconds": 30}, headers=headers))

    waiting = threading.Thread(target=wait)
    waiting.start()
    started = time.monotonic()
    world.call("PUT", "/v1/tenants/acme", json={"metadata": {"name": "acme"}})
    waiting.join(timeout=20)
    assert answers[0].status_code == 200
    assert answers[0].json()["tenants"][0]["name"] == "acme"
    assert time.monotonic() - started < 20


def test_a_waiting_request_ends_with_its_patience_or_with_the_server(world):
    headers = {"If-None-Match": world.get(PATH).headers["etag"]}
    assert world.get(PATH, params={"wait_seconds": 0.1}, headers=headers).status_code == 304
    world.assembly.stopping.is_stopping = True
    assert world.get(PATH, params={"wait_seconds": 30}, headers=headers).status_code == 304
