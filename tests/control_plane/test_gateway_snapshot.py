"""What the gateways get: routes by model name, arms by identity, and an answer as soon as something changed."""

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from control_plane.records import EndpointRecord, Phase, Route, StoredDeployment
from control_plane.services.route_table import routes_of
from fleet.snapshot import GatewaySnapshot

PATH = "/v1/gateway/snapshot"
TENANTS = st.lists(st.sampled_from(["acme", "globex", "initech"]), unique=True).map(tuple)


def deployment(name, model, tenants=("acme",), output_filter="none", endpoints=()):
    route = Route(model, tenants, output_filter)
    return StoredDeployment(name, 1, {}, f"id-{name}", "vllm", "k", route, None, "", "", Phase.PENDING, endpoints)


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
