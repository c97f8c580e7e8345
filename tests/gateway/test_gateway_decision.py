"""The decision core: it allows exactly what the snapshot says, and refuses in OpenAI's form."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.asked import Request
from gateway.decision import Allowed, Answered, DecisionCore
from gateway.index import index_of, is_socket_address
from gateway.refusals import Reason, Refused
from gateway.request_document import MAX_ITEMS, MAX_PARTS, MAX_TEXTS, BadDocument, parse_document

CHAT = "/v1/chat/completions"
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
)


@pytest.fixture(scope="module")
def core(world):
    return core_with(world.snapshot())


def core_with(snapshot):
    core = DecisionCore()
    core.replace(index_of(snapshot), 0.0)
    return core


def post(key, body, target=CHAT, **headers):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", target, {"authorization": f"Bearer {key}", **headers}, content)


def chat(model, text="hello"):
    return {"model": model, "messages": [{"role": "user", "content": text}]}


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "HEAD"]) | st.text(max_size=5),
    target=st.sampled_from([CHAT, "/v1/models", "/metrics"]) | st.text(max_size=20),
    authorization=st.text(max_size=30) | st.text(max_size=20).map("Bearer {}".format),
    body=st.binary(max_size=50) | JSON.map(lambda value: json.dumps(value).encode()),
)
def test_without_a_valid_key_nothing_is_allowed_and_nothing_raises(core, world, method, target, authorization, body):
    decision = core.decide(Request(method, target, {"authorization": authorization}, body), world.now)
    assert isinstance(decision, Refused)
    assert decision.status == 401


@given(body=st.binary(max_size=80) | JSON.map(lambda value: json.dumps(value).encode()), target=st.sampled_from([CHAT]))
def test_whatever_the_body_the_answer_is_a_decision(core, world, body, target):
    decision = core.decide(post(world.acme_key, body, target), world.now)
    if isinstance(decision, Refused):
        error = json.loads(decision.body)["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert 400 <= decision.status <= 503


@given(
    messages=JSON | st.lists(st.fixed_dictionaries({"role": JSON | st.just("system"), "content": JSON}), max_size=3),
    prompt=JSON,
    wanted=JSON,
)
def test_whatever_the_members_of_a_chat_hold_it_is_decided(core, world, messages, prompt, wanted):
    body = {"model": "acme-chat", "messages": messages, "prompt": prompt, "input": wanted}
    text = json.dumps(body).replace("NaN", "1e999").replace("Infinity", "1e999")
    assert isinstance(core.decide(post(world.acme_key, text.encode()), world.now), Allowed)


@given(model=st.sampled_from(["acme-chat", "globex-chat", "both-chat"]) | st.text(max_size=12), of_acme=st.booleans())
def test_exactly_the_models_of_the_tenant_are_allowed(core, world, model, of_acme):
    tenant, key = ("acme", world.acme_key) if of_acme else ("globex", world.globex_key)
    decision = core.decide(post(key, chat(model)), world.now)
    if model in {f"{tenant}-chat", "both-chat"}:
        assert isinstance(decision, Allowed)
        assert (decision.tenant, decision.model) == (tenant, model)
    else:
        assert isinstance(decision, Refused)
        assert decision.reason in {Reason.MODEL_NOT_FOUND, Reason.MISSING_MODEL}


def test_allowed_names_the_endpoints_and_who_asked(core, world):
    decision = core.decide(post(world.acme_key, chat("acme-chat")), world.now)
    headers = dict(decision.headers_to_set)
    assert set(headers["x-gateway-destination-endpoint"].split(",")) == {"127.0.0.1:9001", "127.0.0.1:9002"}
    assert (headers["x-gateway-tenant"], headers["x-gateway-model"]) == ("acme", "acme-chat")
    assert headers["x-gateway-identity"] == world.arm().identity
    assert set(decision.headers_to_remove) == {"authorization", "x-api-key", "x-arm"}


def test_equal_endpoints_are_chosen_by_chance(core, world):
    firsts = [core.decide(post(world.acme_key, chat("both-chat")), world.now).endpoints[0] for _ in range(100)]
    assert all(firsts.count(address) >= 30 for address in ("127.0.0.1:9001", "127.0.0.1:9002"))


def test_before_the_first_snapshot_everything_is_refused(world):
    decision = DecisionCore().decide(post(world.acme_key, chat("acme-chat")), world.now)
    assert (decision.reason, decision.status) == (Reason.NO_SNAPSHOT, 503)


def test_a_key_ends_at_its_second(core, world):
    request = post(world.expired_key, chat("acme-chat"))
    assert isinstance(core.decide(request, world.now - 1), Allowed)
    assert core.decide(request, world.now).reason is Reason.EXPIRED_KEY


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic {}", "{}", "Bearer x{}", "Bearer {} {}"])
def test_a_key_in_another_form_is_refused(core, world, value):
    request = Request("POST", CHAT, {"authorization": value.format(world.acme_key, world.acme_key)}, b"{}")
    assert core.decide(request, world.now).status == 401


@pytest.mark.parametrize("value", ["bearer {}", "BEARER  {} "])
def test_the_scheme_may_be_written_small_or_large(core, world, value):
    headers = {"authorization": value.format(world.acme_key)}
    body = json.dumps(chat("acme-chat")).encode()
    assert isinstance(core.decide(Request("POST", CHAT, headers, body), world.now), Allowed)


def test_a_key_of_a_tenant_that_is_gone_is_invalid(world):
    snapshot = world.snapshot()
    core = core_with(snapshot.model_copy(update={"tenants": snapshot.tenants[1:]}))
    assert core.decide(post(world.acme_key, chat("acme-chat")), world.now).reason is Reason.INVALID_KEY


def test_a_hash_in_capitals_is_the_same_hash(world):
    snapshot = world.snapshot()
    keys = tuple(key.model_copy(update={"sha256": key.sha256.upper()}) for key in snapshot.keys)
    core = core_with(snapshot.model_copy(update={"keys": keys}))
    assert isinstance(core.decide(post(world.acme_key, chat("acme-chat")), world.now), Allowed)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", Reason.BAD_JSON),
        (b"{", Reason.BAD_JSON),
        (b"[]", Reason.BAD_JSON),
        (b"\xff", Reason.BAD_JSON),
        ('{"model":"acme-chat"}'.encode("utf-16"), Reason.BAD_JSON),
        (b'{"model":"acme-chat","x":NaN}', Reason.BAD_JSON),
        (b'{"model":"acme-chat","model":"globex-chat"}', Reason.BAD_JSON),
        (b'{"model":"acme-chat","mod\\u0065l":"globex-chat"}', Reason.BAD_JSON),
        (b'{"model":"acme-chat","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", Reason.BAD_JSON),
        (b'{"model":"acme-chat","x":' + b"1" * 5000 + b"}", Reason.BAD_JSON),
        (b"{}", Reason.MISSING_MODEL),
        (b'{"model":null}', Reason.MISSING_MODEL),
        (b'{"model":["acme-chat"]}', Reason.MISSING_MODEL),
        (b'{"model":""}', Reason.MISSING_MODEL),
        (b'{"model":"\\ud800"}', Reason.MODEL_NOT_FOUND),
    ],
)
def test_odd_bodies_are_refused_with_their_reason(core, world, body, reason):
    decision = core.decide(post(world.acme_key, body), world.now)
    assert decision.reason is reason
    assert len(decision.body) < 500


def test_a_compressed_body_is_refused(core, world):
    decision = core.decide(post(world.acme_key, b"x", **{"content-encoding": "gzip"}), world.now)
    assert decision.status == 415


def test_the_wrong_method_names_the_right_one(core, world):
    decision = core.decide(Request("GET", CHAT, {"authorization": f"Bearer {world.acme_key}"}), world.now)
    assert (decision.status, decision.headers) == (405, (("allow", "POST"),))


def test_the_models_are_answered_here(core, world):
    decision = core.decide(Request("GET", "/v1/models", {"authorization": f"Bearer {world.acme_key}"}), world.now)
    assert isinstance(decision, Answered)
    assert [card["id"] for card in json.loads(decision.body)["data"]] == ["acme-chat", "both-chat"]


def test_only_draining_endpoints_are_no_endpoint(world):
    snapshot = world.snapshot()
    arm = world.arm(draining=("127.0.0.1:1",))
    arm = arm.model_copy(update={"endpoints": arm.endpoints[-1:]})
    core = core_with(snapshot.model_copy(update={"routes": (snapshot.routes[0].model_copy(update={"arms": (arm,)}),)}))
    decision = core.decide(post(world.acme_key, chat("acme-chat")), world.now)
    assert (decision.reason, decision.status) == (Reason.NO_ENDPOINT, 503)


def test_a_filter_that_is_asked_for_and_not_there_refuses(world):
    core = core_with(world.snapshot(output_filter="nobody-knows"))
    assert core.decide(post(world.acme_key, chat("acme-chat")), world.now).reason is Reason.FILTER_UNAVAILABLE


def test_a_limit_counts_allowed_requests_and_survives_a_new_snapshot(world):
    core = core_with(world.snapshot(requests_per_minute=2))
    assert core.decide(post(world.acme_key, chat("nobody-chat")), world.now).reason is Reason.MODEL_NOT_FOUND
    assert isinstance(core.decide(post(world.acme_key, chat("acme-chat")), world.now), Allowed)
    core.replace(index_of(world.snapshot(requests_per_minute=2)), world.now)
    assert isinstance(core.decide(post(world.acme_key, chat("acme-chat")), world.now), Allowed)
    refused = core.decide(post(world.acme_key, chat("acme-chat")), world.now)
    assert (refused.status, dict(refused.headers)["retry-after"]) == (429, "30")
    assert isinstance(core.decide(post(world.globex_key, chat("globex-chat")), world.now), Allowed)
    assert isinstance(core.decide(post(world.acme_key, chat("acme-chat")), world.now + 30), Allowed)


@pytest.mark.parametrize("model", ["acme-chat", "globex-chat"])
@pytest.mark.parametrize("limit", [None, 0])
def test_no_repr_holds_a_key_or_a_prompt(world, model, limit):
    core = core_with(world.snapshot(requests_per_minute=limit))
    request = post(world.acme_key, chat(model, "the-secret-prompt"), target=f"{CHAT}?key={world.acme_key}")
    shown = repr((request, core.decide(request, world.now), core.index))
    assert world.acme_key not in shown
    assert "the-secret-prompt" not in shown


def test_endpoints_that_envoy_could_not_read_are_left_out_and_named(world):
    index = index_of(world.snapshot("127.0.0.1:9001", "engine.example:9001", "[::1]:9001", "127.0.0.1:0"))
    assert index.addresses == {"127.0.0.1:9001", "[::1]:9001"}
    assert index.unusable_addresses == ("127.0.0.1:0", "engine.example:9001")
    usable = {endpoint.address for arm in index.routes["acme", "acme-chat"].arms for endpoint in arm.endpoints}
    assert usable == index.addresses


OTHER_SPELLINGS = [
    "1.2.3.4:080",
    "[[::1]]:80",
    "[0:0::1]:80",
    "[::0001]:80",
    "[fe80::1%eth0]:80",
    "1.2.3.4:" + "9" * 5000,
]


@pytest.mark.parametrize("identity", ["", "a\r\nx-gateway-tenant: root", "ключ", "two words", "x" * 300])
def test_an_arm_whose_identity_can_not_stand_in_a_header_is_left_out_and_named(world, identity):
    good = world.snapshot("127.0.0.1:9001")
    bad = good.routes[0].arms[0].model_copy(update={"identity": identity, "deployment": "broken"})
    arms = (bad, *good.routes[0].arms)
    routes = (good.routes[0].model_copy(update={"arms": arms}), *good.routes[1:])
    core = core_with(good.model_copy(update={"routes": routes}))
    assert core.index.unusable_arms == ("broken",)
    for turn in range(20):
        decision = core.decide(post(world.acme_key, chat("acme-chat", f"conversation {turn}")), world.now)
        assert decision.deployment != "broken"


@pytest.mark.parametrize(
    "address", ["", ":1", "1.2.3.4", "1.2.3.4:", "1.2.3.4:65536", "::1:80", "[1.2.3.4]:80", "a:1", *OTHER_SPELLINGS]
)
def test_what_is_no_socket_address_is_known(address):
    assert not is_socket_address(address)


COSTLY = {
    "lists": "[]",
    "objects": "{}",
    "objects with a member": '{"a":1}',
    "nested lists": "[[]]",
    "lists between texts with quotes": r'"\\\"",[]',
}


@pytest.mark.parametrize("part", COSTLY.values(), ids=COSTLY)
def test_a_body_of_very_many_parts_is_refused_before_it_is_read(part, monkeypatch):
    monkeypatch.setattr("gateway.request_document.json.loads", _never)
    body = b'{"model":"m","a":[' + b",".join([part.encode()] * (MAX_PARTS + 1)) + b"]}"
    with pytest.raises(BadDocument, match=f"more than {MAX_PARTS} objects"):
        parse_document(body)


def test_a_list_of_very_many_texts_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr("gateway.request_document.json.loads", _never)
    with pytest.raises(BadDocument, match=f"more than {MAX_TEXTS} texts"):
        parse_document(b'{"a":[' + b",".join([b'""'] * (MAX_ITEMS + 2)) + b"]}")


def test_a_list_of_very_many_items_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr("gateway.request_document.json.loads", _never)
    with pytest.raises(BadDocument, match=f"more than {MAX_ITEMS} items"):
        parse_document(b'{"model":"m","prompt":[' + b",".join([b"1"] * (MAX_ITEMS + 2)) + b"]}")


def _never(*_arguments, **_names):
    raise AssertionError("it was read")


@given(texts=st.lists(st.text(alphabet='{[:,"\\ a', max_size=40), max_size=5))
def test_signs_inside_a_text_do_not_count(texts):
    document = {"model": "m", "prompt": [text * (MAX_PARTS // (1 + len(text))) for text in texts]}
    assert parse_document(json.dumps(document).encode()) == document


def test_a_long_prompt_of_code_is_read():
    document = {"model": "m", "prompt": 'if (a[0] == {"b": 1}) { c(d, "\\\\"); }\n' * 100_000}
    assert parse_document(json.dumps(document).encode()) == document
