"""Tenants that a route parts never share a cached prompt, and a session that a client names stays together."""

import json

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.request_side import salted_operations
from fleet.snapshot import GatewayShadow
from gateway.asked import Asked, Request
from gateway.authentication import Caller
from gateway.body_edits import apply_edits
from gateway.cache_salt import arms_that_salt, members, salt_of
from gateway.decision import Allowed, DecisionCore
from gateway.index import index_of
from gateway.paths import Operation
from gateway.refusals import Refused
from gateway.request_edits import request_edits
from gateway.routed_prompt import conversation_of, routing_request
from tests.gateway.simulated import OTHER_MODEL, publish, simulated_engine

STATED = st.none() | st.text(max_size=8) | st.integers() | st.lists(st.text(max_size=3), max_size=2)
LONG = "the same long system prompt of an application " * 100


def asked(world, document, tenant="acme", operation=Operation.CHAT, headers=None, **route):
    snapshot = world.snapshot(**route)
    key = next(key for key in snapshot.keys if key.tenant == tenant)
    owner = next(found for found in snapshot.tenants if found.name == tenant)
    request = Request("POST", "/v1/chat/completions", headers or {}, json.dumps(document).encode())
    return Asked(request, document, operation, Caller(owner, key), snapshot.routes[0])


@given(STATED, STATED)
def test_no_client_can_have_the_salt_of_another_tenant(world, one, other):
    ours = asked(world, {"cache_salt": one}, salts_cache=True)
    theirs = asked(world, {"cache_salt": other}, "globex", salts_cache=True)
    assert salt_of(ours, ours.route) != salt_of(theirs, theirs.route)
    stolen = asked(world, {"cache_salt": salt_of(ours, ours.route)}, "globex", salts_cache=True)
    assert salt_of(stolen, stolen.route) != salt_of(ours, ours.route)
    own = asked(world, {"cache_salt": other}, salts_cache=True)
    assert (salt_of(own, own.route) == salt_of(ours, ours.route)) == (json.dumps(one) == json.dumps(other))


@given(STATED, st.booleans())
def test_the_salt_stands_once_in_what_the_engine_gets(world, stated, is_there):
    document = {"model": "acme-chat", "messages": []} | ({"cache_salt": stated} if is_there else {})
    request = asked(world, document, salts_cache=True)
    more = members(request, request.route)
    edits = request_edits(request.request.body, document, Operation.CHAT, None, more=more).edits
    sent = apply_edits(request.request.body, edits)
    assert json.loads(sent) == document | {"cache_salt": salt_of(request, request.route)}
    assert sent.count(b'"cache_salt"') == 1


def test_where_the_route_parts_nobody_the_bytes_are_the_clients(world):
    request = asked(world, {"cache_salt": "mine"})
    assert (members(request, request.route), salt_of(request, request.route)) == ({}, "mine")


def test_prompts_of_parted_tenants_have_no_block_in_common(world):
    document = {"messages": [{"role": "user", "content": LONG}]}
    blocks = [
        set(routing_request(asked(world, document, tenant, **route), None).blocks)
        for route in ({"salts_cache": True}, {})
        for tenant in ("acme", "globex")
    ]
    assert blocks[0]
    assert not blocks[0] & blocks[1]
    assert blocks[2] == blocks[3]


@pytest.mark.parametrize(
    ("engine", "operation", "is_left"),
    [
        ("vllm", Operation.CHAT, True),
        ("vllm", Operation.MESSAGES, True),
        ("vllm", Operation.EMBEDDING, False),
        ("sglang", Operation.RESPONSES, True),
        ("tensorrt-llm", Operation.COMPLETION, False),
        ("lmdeploy", Operation.CHAT, False),
        ("lmdeploy", Operation.TOKENIZE, True),
        ("unheard-of", Operation.CHAT, False),
    ],
)
def test_engines_that_cannot_keep_tenants_apart_get_nothing_of_theirs(world, engine, operation, is_left):
    arm = world.arm().model_copy(update={"engine": engine})
    parted = asked(world, {}, operation=operation, salts_cache=True)
    assert bool(arms_that_salt(parted, parted.route, (arm,))) is is_left
    shared = asked(world, {}, operation=operation)
    assert arms_that_salt(shared, shared.route, (arm,)) == (arm,)


@pytest.mark.parametrize(("shadow_engine", "is_copied"), [("vllm", True), ("lmdeploy", False)])
def test_copies_for_a_shadow_are_parted_as_well(world, shadow_engine, is_copied):
    arm = world.arm("127.0.0.1:9009", name="shadow").model_copy(update={"engine": shadow_engine})
    decision = decided(world, world.snapshot(salts_cache=True, shadow=GatewayShadow(arm=arm, share=1.0)))
    mirror = decision.admitted.mirror
    assert (mirror is not None) is is_copied
    if mirror is not None:
        assert b'"cache_salt":"' in mirror.edited(body_of("acme-chat"))


@pytest.mark.parametrize("also_salts", [True, False])
def test_a_model_that_shares_never_stands_in_for_one_that_does_not(world, also_salts):
    snapshot = world.snapshot(salts_cache=True, fallbacks=("both-chat",))
    first, *others = snapshot.routes
    nobody = world.arm().model_copy(update={"endpoints": ()})
    away = first.model_copy(update={"arms": (nobody,)})
    others = [route.model_copy(update={"salts_cache": also_salts}) for route in others]
    decision = decided(world, snapshot.model_copy(update={"routes": (away, *others)}))
    assert isinstance(decision, Allowed if also_salts else Refused)


def decided(world, snapshot):
    core = DecisionCore()
    core.replace(index_of(snapshot), world.now)
    headers = {"authorization": f"Bearer {world.acme_key}"}
    return core.decide(Request("POST", "/v1/chat/completions", headers, body_of("acme-chat")), world.now)


def body_of(model):
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]}).encode()


def test_the_words_of_the_catalogue_are_the_gateways():
    words = {operation.value for operation in Operation}
    assert all(known <= words for known in salted_operations().values())


def test_a_named_session_is_one_conversation_whatever_it_says(world):
    def request(text, session, tenant="acme"):
        headers = {} if session is None else {"x-session-id": session}
        document = {"messages": [{"role": "user", "content": text}]}
        return asked(world, document, tenant, headers=headers, session_header="x-session-id")

    one, two = request("a", "s1"), request("b", "s1")
    assert conversation_of(one) == conversation_of(two)
    assert routing_request(one, None).session == routing_request(two, None).session is not None
    for other in (request("a", "s2"), request("a", "s1", "globex"), request("a", ""), request("a", None)):
        assert conversation_of(other) != conversation_of(one)
        assert routing_request(other, None).session != routing_request(one, None).session
    assert routing_request(request("a", ""), None).session is None


def test_token_ids_are_cut_as_the_engine_cuts_them(world):
    prompt = asked(world, {"prompt": list(range(100))}, operation=Operation.COMPLETION)
    assert [len(routing_request(prompt, size).blocks) for size in (32, None)] == [3, 6]


# --- Through real Envoy ---
def cached(gateway, key, **fields):
    body = {"model": OTHER_MODEL, "max_tokens": 1, "messages": [{"role": "user", "content": LONG}], **fields}
    headers = {"authorization": f"Bearer {key}"}
    answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=20)
    assert answer.status_code == 200, answer.text
    return (answer.json()["usage"]["prompt_tokens_details"] or {}).get("cached_tokens", 0)


def test_a_prompt_is_cached_for_its_tenant_alone(gateway, world, until):
    with simulated_engine("--time-scale", "0.02", options=("--enable-prompt-tokens-details",)) as engine:
        publish(gateway, world, engine)
        assert cached(gateway, world.acme_key) == 0
        assert cached(gateway, world.globex_key) > 500, "without salts they share"
        routes = gateway.control_plane.snapshot.routes
        parted = tuple(route.model_copy(update={"salts_cache": True}) for route in routes)
        gateway.publish(gateway.control_plane.snapshot.model_copy(update={"routes": parted}))
        until(lambda: cached(gateway, world.acme_key) == 0, "the first parted request")
        assert cached(gateway, world.globex_key) == 0
        assert cached(gateway, world.acme_key) > 500
        assert cached(gateway, world.globex_key) > 500
        assert cached(gateway, world.acme_key, cache_salt="mine") == 0


def test_a_session_goes_where_its_first_request_went(gateway, world, until):
    snapshot = world.snapshot(gateway.one.address, gateway.two.address, session_header="x-session-id")
    gateway.publish(snapshot)

    def serves(session, text):
        headers = {"authorization": f"Bearer {world.acme_key}", "x-session-id": session}
        body = {"model": "acme-chat", "messages": [{"role": "user", "content": text * 200}]}
        answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers)
        return answer.text if answer.status_code == 200 else None

    until(lambda: {serves(f"warm-{n}", f"{n}") for n in range(6)} == {"one", "two"}, "both engines")
    for session in "abcdef":
        assert len({serves(session, f"{session}{turn}") for turn in range(5)}) == 1
