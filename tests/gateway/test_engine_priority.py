"""What engines are told of priorities: the tenant's, and never a client's own that would put it ahead."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayArm, HostedEndpoint
from gateway.asked import Request
from gateway.decision import DecisionCore
from gateway.engine_priority import priority_member
from gateway.index import index_of

ANYTHING = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)


def arm(engine="vllm", takes_priority=True, **more):
    return GatewayArm(deployment="chat", identity="i", engine=engine, takes_priority=takes_priority, **more)


@pytest.mark.parametrize(("engine", "told"), [("vllm", -7), ("sglang", 7)])
def test_the_tenants_priority_is_told_in_the_engines_own_sense(engine, told):
    assert priority_member(arm(engine), 7, {}) == {"priority": told}


def test_an_engine_that_was_not_started_for_it_is_told_nothing():
    assert priority_member(arm(takes_priority=False), 7, {}) == {}
    assert priority_member(arm("tensorrt-llm"), 7, {}) == {}


@given(stated=ANYTHING, priority=st.integers(-1000, 1000))
def test_a_client_can_put_itself_behind_and_never_ahead(stated, priority):
    document = {"priority": stated}
    told = {**document, **priority_member(arm(), priority, document)}["priority"]
    assert type(told) is int
    assert told >= -priority  # with vLLM the smaller number goes first
    told = {**document, **priority_member(arm("sglang"), priority, document)}["priority"]
    assert type(told) is int
    assert told <= priority


@given(stated=ANYTHING)
def test_where_the_engine_takes_none_a_clients_own_is_made_neutral(stated):
    document = {"priority": stated}
    assert {**document, **priority_member(arm(takes_priority=False), 5, document)}["priority"] == 0
    assert {**document, **priority_member(arm("sglang", takes_priority=False), 5, document)}["priority"] is None


def test_what_is_right_already_is_not_written_anew_and_a_hosted_engine_is_left_alone():
    assert priority_member(arm(), 0, {"priority": 3}) == {}
    hosted = HostedEndpoint(url="https://api.example.com/v1", model="m", api_key_ref="key")
    assert priority_member(arm("groq", takes_priority=False, hosted=hosted), 5, {"priority": 1}) == {}


def test_the_body_that_an_engine_gets_has_it(world):
    snapshot = world.snapshot()
    acme = snapshot.tenants[0].model_copy(update={"priority": 2})
    route = snapshot.routes[0]
    arms = tuple(one.model_copy(update={"takes_priority": True}) for one in route.arms)
    routes = (route.model_copy(update={"arms": arms}), *snapshot.routes[1:])
    core = DecisionCore()
    core.replace(index_of(snapshot.model_copy(update={"tenants": (acme,), "routes": routes})), world.now)
    body = b'{"model": "acme-chat", "priority": -99, "messages": [{"role": "user", "content": "hello"}]}'
    allowed = core.decide(
        Request("POST", "/v1/chat/completions", {"authorization": f"Bearer {world.acme_key}"}, body), world.now
    )
    assert json.loads(allowed.admitted.edited(body))["priority"] == -2
