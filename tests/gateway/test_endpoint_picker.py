"""The decision core as an endpoint picker, on fake calls: whatever a proxy does, nothing is held in the end."""

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.output_policy import FilterPolicy, Moderation, OwnPattern
from fleet.snapshot import GatewayShadow, GatewayTenant, HostedEndpoint
from gateway.answer_filter import RouteFilter
from gateway.decision import Allowed, DecisionCore
from gateway.endpoint_picker import CorePicker
from gateway.ext_proc_picking import LB_NAMESPACE, SERVED_KEY, SUBSET_KEY, SUBSET_NAMESPACE
from gateway.index import index_of
from gateway.output_filter.channel import CompiledPolicy
from gateway.passage import End
from gateway.reach import Reach
from gateway.second_look import SecondLook
from gateway.token_usage import TokenUsage
from tests.gateway.ext_proc_talk import FULL_DUPLEX, Talk, pieces_of

CHAT = "/v1/chat/completions"
DESTINATION = "x-gateway-destination-endpoint"
ENGINES = ("10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8001")
USAGE = b'"usage":{"prompt_tokens":9,"completion_tokens":2}'
EVENTS = (
    b'data: {"choices":[{"delta":{"content":"a"}}],"usage":null}\n\n',
    b'data: {"choices":[{"delta":{"content":"b"}}],"usage":null}\n\n',
)
LAST = b'data: {"choices":[],' + USAGE + b"}\n\n"
DONE = b"data: [DONE]\n\n"
STREAM = b"".join((*EVENTS, LAST, DONE))
SHOWN = b"".join((*EVENTS, DONE)).replace(b',"usage":null', b"")
WHOLE = b'{"choices":[{"message":{"content":"the secret is out"}}],' + USAGE + b"}"


class Watch:
    """Who counts what filters do."""

    def __init__(self):
        self.told = []

    def answered(self, model, counts, blocked, failure):
        self.told.append((dict(counts), blocked, failure))

    def asked(self, model, counts, blocked):
        pass


class Judge:
    async def may_pass(self, texts):
        return [True for _ in texts]


class House:
    """A core with a picker on it, and what it told."""

    def __init__(self, world, *, policy=None, judge=None, look=None, arms=None, **route):
        self.world, self.now, self.ended, self.decided, self.copies = world, world.now, [], [], []
        self.core = DecisionCore(clock=lambda: self.now, on_end=self.ended.append)
        self.watch = Watch()
        filters = {} if policy is None else {"named": RouteFilter(CompiledPolicy(policy), self.watch, b"", judge)}
        made = world.snapshot(*ENGINES, **({"output_filter": "named"} if policy else {}), **route)
        if arms is not None:
            routes = tuple(one.model_copy(update={"arms": arms}) for one in made.routes)
            made = made.model_copy(update={"routes": routes})
        limited = GatewayTenant(name="acme", tokens_per_minute=100_000, default_output_tokens=10)
        made = made.model_copy(update={"tenants": (limited, *made.tenants[1:])})
        self.core.replace(index_of(made, filters), self.now)
        self.picker = CorePicker(
            self.core,
            now_unix_seconds=lambda: self.now,
            now_monotonic_seconds=lambda: self.now,
            decided=lambda decision, _: self.decided.append(decision),
            second_look=look,
            send_copy=lambda mirror, request: self.copies.append(request),
        )

    def talk(self, modes=FULL_DUPLEX):
        return Talk(self.picker, modes=modes)

    def headers(self, path=CHAT, key=None, **more):
        stated = {":method": "POST", ":path": path, "authorization": f"Bearer {key or self.world.acme_key}"}
        return stated | {name.replace("_", "-"): value for name, value in more.items()}

    async def asked(self, *, subset=None, stream=True, talk=None, body=None, **headers):
        """A request that is decided about, as far as it has not to wait."""
        talk = talk or self.talk()
        spaces = None if subset is None else {SUBSET_NAMESPACE: {SUBSET_KEY: subset}}
        chat = {"model": "acme-chat", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
        talk.say("request_headers", headers=self.headers(**headers), spaces=spaces)
        talk.say("request_body", body=json.dumps(body or chat).encode(), end_of_stream=True)
        await turns()
        return talk

    def answered(self, talk, *pieces, status="200", kind="text/event-stream", served=None, ends=True):
        spaces = None if served is None else {LB_NAMESPACE: {SERVED_KEY: served}}
        talk.say("response_headers", headers={":status": status, "content-type": kind}, spaces=spaces)
        for piece in pieces:
            talk.say("response_body", body=piece)
        return talk.say("response_body", end_of_stream=True) if ends else talk

    @property
    def in_flight(self):
        return [self.core.router._loads.in_flight(one) for one in ENGINES]

    @property
    def held(self):
        return self.core.running, self.core.turns.running, len(self.core.turns), len(self.picker), sum(self.in_flight)


NOTHING = (0, 0, 0, 0, 0)


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


def picked(talk):
    return talk.call.sent[0].dynamic_metadata[LB_NAMESPACE][DESTINATION].split(",")


def refusal(talk):
    found = talk.call.sent[0].immediate_response
    return found.status.code, found.details


STEPS = ("turn", "head", "piece", "piece", "piece", "end", "trailers")


@given(
    at=st.integers(0, len(STEPS)), cut=st.integers(1, 40), status=st.sampled_from(["200", "503"]), stream=st.booleans()
)
@settings(deadline=None, max_examples=60)
def test_wherever_a_call_ends_nothing_is_held_and_the_end_is_told_once(world, at, cut, status, stream):
    async def run():
        house = House(world)
        talk = house.talk()
        chat = {"model": "acme-chat", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
        talk.say("request_headers", headers=house.headers())
        talk.say("request_body", body=json.dumps(chat).encode(), end_of_stream=True)
        said = STREAM if stream else WHOLE
        kind = "text/event-stream" if stream else "application/json"
        acts = {
            "head": lambda: house.answered(talk, status=status, kind=kind, ends=False),
            "piece": lambda: talk.say("response_body", body=said[:cut]),
            "end": lambda: talk.say("response_body", body=said[cut:], end_of_stream=True),
            "trailers": lambda: None,
            "turn": lambda: None,
        }
        for name in STEPS[:at]:
            acts[name]()
            await turns()
        talk.handler.closed()
        await turns()
        assert house.held == NOTHING
        assert len(house.ended) == 1
        assert len(house.decided) == 1

    asyncio.run(run())


@given(cuts=st.sets(st.integers(1, len(STREAM) - 1), max_size=12))
@settings(deadline=None, max_examples=60)
def test_a_stream_is_charged_by_its_usage_which_the_client_does_not_see_whatever_its_pieces(world, cuts):
    async def run():
        house = House(world)
        talk = house.answered(await house.asked(), *pieces_of(STREAM, cuts))
        assert talk.body("response_body") == SHOWN
        ended = house.ended[0]  # before the call is over: the client's next request finds it settled
        assert (ended.ending.end, ended.settled.usage, ended.settled.basis) == (End.WHOLE, TokenUsage(9, 0, 2), "usage")
        talk.handler.closed()
        assert house.held == NOTHING

    asyncio.run(run())


@given(st.sets(st.sampled_from([*ENGINES, "10.0.0.1", "10.0.0.3", "10.9.9.9", "10.9.9.9:8000"])))
@settings(deadline=None, max_examples=40)
def test_only_endpoints_of_the_subset_are_picked_and_503_where_none_is(world, subset):
    async def run():
        house = House(world)
        talk = await house.asked(subset=sorted(subset))
        may = {one for one in ENGINES if one in subset or one.partition(":")[0] in subset}
        if may:
            assert set(picked(talk)) == may
        else:
            assert refusal(talk) == (503, "no_endpoint")
        talk.handler.closed()
        assert house.held == NOTHING

    asyncio.run(run())


def test_a_reach_without_a_subset_holds_endpoints_and_no_hosted_engine():
    assert Reach().holds("10.0.0.1:8000")
    assert Reach().holds("[::1]:8000")
    assert not Reach().holds("chat/0123456789abcdef")
    assert Reach(("::1",)).holds("[::1]:8000")


async def test_what_engines_get_is_edited_and_holds_nothing_of_the_client_s_own_words(world):
    house = House(world)
    own = {"x_gateway_tenant": "globex", "x_gateway_inference_objective": "urgent", "accept_encoding": "gzip"}
    talk = await house.asked(**own)
    mutation = talk.call.sent[0].request_headers.response.header_mutation
    said = {option.header.key: option.header.raw_value.decode() for option in mutation.set_headers}
    assert said == {
        DESTINATION: ",".join(picked(talk)),
        "x-gateway-tenant": "acme",
        "x-gateway-model": "acme-chat",
        "x-gateway-deployment": "chat",
        "x-gateway-identity": world.arm().identity,
    }
    gone = set(mutation.remove_headers)
    assert {"authorization", "x-api-key", "x-arm", "accept-encoding", "x-gateway-inference-objective"} <= gone
    assert not gone & said.keys()
    body = json.loads(talk.body("request_body"))
    assert (body["stream_options"], body["max_tokens"]) == ({"include_usage": True}, 10)
    assert sum(house.in_flight) == 1
    head = house.answered(talk, STREAM).call.sent[-3].response_headers.response.header_mutation
    shown = {option.header.key for option in head.set_headers}
    assert {"x-served-model", "x-ratelimit-remaining-tokens"} <= shown
    talk.handler.closed()


async def test_the_endpoint_that_served_counts_and_those_before_it_have_failed(world):
    house = House(world)
    talk = await house.asked()
    second = picked(talk)[1]
    house.answered(talk, STREAM[:70], served=second, ends=False)
    assert dict(zip(ENGINES, house.in_flight, strict=True)) == {**dict.fromkeys(ENGINES, 0), second: 1}
    talk.handler.closed()
    assert (house.ended[0].address, house.ended[0].ending.end) == (second, End.CLIENT_LEFT)
    assert house.held == NOTHING


async def test_an_endpoint_that_never_serves_what_it_is_picked_for_is_ejected(world):
    house = House(world)
    for _ in range(60):
        talk = await house.asked(subset=list(ENGINES[:2]))
        served = ENGINES[1] if len(picked(talk)) > 1 else picked(talk)[0]
        house.answered(talk, STREAM, served=served).handler.closed()
    assert house.core.router.ejections.ejected(house.now) == (ENGINES[0],)
    assert house.held == NOTHING


async def test_an_endpoint_that_the_proxy_chose_by_itself_is_nobody_s_success(world):
    house = House(world)
    talk = house.answered(await house.asked(), STREAM, served="10.7.7.7:1")
    talk.handler.closed()
    assert (house.ended[0].address in ENGINES, house.held) == (True, NOTHING)


@pytest.mark.parametrize(("status", "basis"), [("503", "failed"), ("400", "failed"), ("200", "usage")])
async def test_an_error_costs_no_tokens(world, status, basis):
    house = House(world)
    talk = house.answered(await house.asked(stream=False), WHOLE, status=status, kind="application/json")
    assert talk.body("response_body") == WHOLE
    assert (house.ended[0].settled.basis, house.ended[0].ending.status) == (basis, int(status))


async def test_a_request_waits_for_its_turn_and_is_picked_when_there_is_room(world):
    house = House(world, concurrent_requests=1)
    first = await house.asked()
    second, third = await house.asked(), await house.asked()
    assert (second.call.sent, len(house.core.turns)) == ([], 2)
    third.handler.closed()
    await turns()
    assert len(house.core.turns) == 1
    house.answered(first, STREAM).handler.closed()
    await turns()
    assert second.kinds()[0] == "request_headers"
    second.handler.closed()
    assert house.held == NOTHING
    assert sorted(ended.ending.end for ended in house.ended) == ["client_left", "client_left", "whole"]


@pytest.mark.parametrize("endpoint", ENGINES)
async def test_a_request_that_waited_keeps_to_its_subset(world, endpoint):
    house = House(world, concurrent_requests=1)
    first = await house.asked()
    second = await house.asked(subset=[endpoint])
    house.now += 1
    first.handler.closed()
    await turns()
    assert picked(second) == [endpoint]
    second.handler.closed()
    assert house.held == NOTHING


async def test_a_shadow_gets_its_copy_without_the_client_s_key(world):
    shadow = GatewayShadow(arm=world.arm("10.1.1.1:8000", name="next"), share=1)
    house = House(world, shadow=shadow)
    talk = await house.asked(subset=[ENGINES[0]])
    (copy,) = house.copies
    assert (copy.method, copy.target, json.loads(copy.body)["model"]) == ("POST", CHAT, "acme-chat")
    assert not {"authorization", ":path"} & copy.headers.keys()
    talk.handler.closed()
    assert house.held == NOTHING


async def test_a_client_that_leaves_before_its_turn_was_asked_for_holds_nothing(world):
    house = House(world)
    talk = house.talk()
    talk.say("request_headers", headers=house.headers())
    chat = {"model": "acme-chat", "messages": [{"role": "user", "content": "hi"}]}
    talk.say("request_body", body=json.dumps(chat).encode(), end_of_stream=True)
    assert house.core.running == 1
    talk.handler.closed()
    await turns()
    assert (house.held, house.ended[0].settled.basis) == (NOTHING, "cancelled")


async def test_nobody_waits_where_nobody_may(world):
    house = House(world, concurrent_requests=1, queue={"max_waiting": 0})
    first, second = await house.asked(), await house.asked()
    assert refusal(second) == (429, "queue_full")
    first.handler.closed()
    second.handler.closed()
    assert house.held == NOTHING


@pytest.mark.parametrize("path", ["/v1/chat/ws", "/v1/realtime?model=acme-chat"])
async def test_a_websocket_is_refused_and_nothing_is_held(world, path):
    house = House(world, realtime=True)
    talk = house.talk()
    headers = house.headers(path) | {":method": "GET"}
    talk.say("request_headers", headers=headers, end_of_stream=True)
    await turns()
    assert refusal(talk) == (404, "operation_not_served")
    assert house.held == NOTHING


async def test_hosted_engines_are_passed_over(world):
    host = HostedEndpoint(url="https://api.example.com/v1", model="m", api_key_ref="k")
    hosted = world.arm(name="hosted").model_copy(update={"hosted": host, "endpoints": ()})
    house = House(world, arms=(hosted,))
    assert refusal(await house.asked()) == (503, "no_endpoint")
    house = House(world, arms=(hosted, world.arm(*ENGINES)))
    for _ in range(5):
        talk = await house.asked()
        assert set(picked(talk)) <= set(ENGINES)
        talk.handler.closed()
    assert house.held == NOTHING


async def test_a_filter_that_asks_a_service_refuses(world):
    policy = FilterPolicy(classes={}, moderation=Moderation(service="judge"))
    house = House(world, policy=policy, judge=Judge())
    assert refusal(await house.asked()) == (503, "output_filter_unavailable")
    assert house.held == NOTHING


def secret(mode):
    return FilterPolicy(classes={}, patterns=(OwnPattern(name="word", pattern="secret", mode=mode),))


async def test_a_whole_answer_is_filtered_before_anything_of_it_leaves(world):
    house = House(world, policy=secret("mask"))
    talk = house.answered(await house.asked(stream=False), WHOLE[:30], WHOLE[30:], kind="application/json")
    assert talk.body("response_body") == WHOLE.replace(b"secret", b"[WORD]")
    assert house.watch.told == [({"word": 1}, None, None)]
    house = House(world, policy=secret("block"))
    talk = house.answered(await house.asked(stream=False), WHOLE, kind="application/json")
    assert "response_headers" not in talk.kinds()
    answer = talk.call.sent[-1].immediate_response
    assert (answer.status.code, answer.details, b"secret" in answer.body) == (400, "content_filter", False)
    assert house.ended[0].settled.usage == TokenUsage(9, 0, 2)
    talk.handler.closed()
    assert house.held == NOTHING


@pytest.mark.parametrize(("mode", "status"), [("mask", None), ("block", 400)])
async def test_trailers_are_an_end_too(world, mode, status):
    house = House(world, policy=secret(mode))
    talk = house.answered(await house.asked(stream=False), WHOLE, kind="application/json", ends=False)
    talk.say("response_trailers")
    if status is None:
        assert talk.body("response_body") == WHOLE.replace(b"secret", b"[WORD]")
        assert talk.kinds()[-3:] == ["response_headers", "response_body", "response_trailers"]
    else:
        assert talk.call.sent[-1].immediate_response.status.code == status
    assert house.ended[0].settled.usage == TokenUsage(9, 0, 2)


@pytest.mark.parametrize("policy", [None, "mask"])
async def test_an_answer_without_a_body_is_over_at_its_headers(world, policy):
    house = House(world, policy=policy and secret(policy))
    talk = await house.asked(stream=False)
    talk.say("response_headers", headers={":status": "204"}, end_of_stream=True)
    assert (talk.kinds()[-1], house.ended[0].ending.end) == ("response_headers", End.WHOLE)
    talk.handler.closed()
    assert house.held == NOTHING


async def test_a_stream_ends_before_what_is_blocked_and_is_charged_until_then(world):
    house = House(world, policy=secret("block"))
    event = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n'
    pieces = [event % word for word in (b"the ", b"sec", b"ret ", b"is out")]
    talk = house.answered(await house.asked(), *pieces, ends=False)
    body = talk.body("response_body")
    assert b"content_filter" in body
    assert b"ret" not in body
    assert house.ended[0].ending.end is End.FILTERED
    talk.handler.closed()
    assert (house.held, house.watch.told[0][1]) == (NOTHING, "word")


async def test_an_encoded_answer_can_not_be_filtered_and_is_charged_as_held_where_nothing_is_filtered(world):
    house = House(world, policy=secret("mask"))
    talk = await house.asked(stream=False)
    talk.say("response_headers", headers={":status": "200", "content-encoding": "gzip"})
    assert talk.call.sent[-1].immediate_response.status.code == 503
    house = House(world)
    talk = await house.asked(stream=False)
    talk.say("response_headers", headers={":status": "200", "content-encoding": "gzip"})
    talk.say("response_body", body=b"zipped", end_of_stream=True).handler.closed()
    assert talk.body("response_body") == b"zipped"
    assert (house.ended[0].settled.basis, house.held) == ("reserved", NOTHING)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
async def test_a_proxy_that_keeps_answers_to_itself_gets_nothing_decided(world, mode):
    house = House(world)
    talk = await house.asked(talk=house.talk({"request_body_mode": 4, "response_body_mode": mode}))
    assert (talk.call.status, house.decided) == (9, [])


async def test_models_and_refusals_come_at_once_in_the_form_of_their_api(world):
    house = House(world)
    talk = house.talk()
    talk.say("request_headers", headers=house.headers("/v1/models") | {":method": "GET"}, end_of_stream=True)
    answer = talk.call.sent[0].immediate_response
    assert (answer.status.code, json.loads(answer.body)["data"][0]["id"]) == (200, "acme-chat")
    assert refusal(await house.asked(key="nobody")) == (401, "invalid_api_key")
    talk = await house.asked(path="/v1/messages", key="nobody")
    assert json.loads(talk.call.sent[0].immediate_response.body)["error"]["type"] == "authentication_error"


class Keeper:
    """Whose lease is short until somebody has asked for it."""

    def __init__(self):
        self.wanted = []

    def refill(self, tenant):
        self.wanted.append(asyncio.get_running_loop().create_future())
        return self.wanted[-1]


@pytest.mark.parametrize("leaves", ["before", "while it waits for its turn", "never"])
async def test_a_short_lease_is_asked_for_and_decided_about_again(world, leaves):
    keeper = Keeper()
    house = House(world, look=SecondLook(keeper), concurrent_requests=1)
    big = {"model": "acme-chat", "messages": [], "max_tokens": 99_000}
    first = await house.asked(body=big)
    second = await house.asked(body=big)
    assert (second.call.sent, len(keeper.wanted)) == ([], 1)
    house.now += 60
    if leaves == "before":
        second.handler.closed()
    keeper.wanted[0].set_result(True)
    await turns()
    assert len(house.decided) == (1 if leaves == "before" else 2)
    assert len(house.core.turns) == (0 if leaves == "before" else 1)
    if leaves != "never":
        second.handler.closed()
        await turns()
        assert house.core.running == 1
    first.handler.closed()
    await turns()
    assert bool(second.call.sent) is (leaves == "never")
    second.handler.closed()
    assert isinstance(house.decided[-1], Allowed)
    assert house.held == NOTHING
