"""Admitted requests: whatever happens on their way, in the end nothing is held and nothing was free."""

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayTenant
from gateway.admitted import Ended
from gateway.asked import Request
from gateway.decision import Allowed, DecisionCore
from gateway.index import index_of
from gateway.passage import End, Ending
from gateway.reservations import Basis
from gateway.tickets import LIFETIME_SECONDS, Tickets
from gateway.token_usage import TokenUsage

CHAT = "/v1/chat/completions"
TOKENS = 1000
ENDINGS = st.builds(
    Ending,
    st.sampled_from(End),
    st.sampled_from([0, 200, 400, 500, 503]),
    st.none() | st.builds(TokenUsage, st.integers(0, 90), st.just(0), st.integers(0, 90)),
    st.integers(0, 50),
)


class Counted:
    """A core with one limited tenant, its clock, and the ends it told."""

    def __init__(self, world, **limits):
        self.world = world
        self.now = world.now
        self.ended: list[Ended] = []
        self.core = DecisionCore(clock=lambda: self.now, on_end=self.ended.append)
        snapshot = world.snapshot()
        acme = GatewayTenant(name="acme", **limits)
        self.core.replace(index_of(snapshot.model_copy(update={"tenants": (acme, snapshot.tenants[1])})), self.now)

    def ask(self, **members):
        body = {"model": "acme-chat", "messages": [{"role": "user", "content": "hello"}], **members}
        headers = {"authorization": f"Bearer {self.world.acme_key}"}
        return self.core.decide(Request("POST", CHAT, headers, json.dumps(body).encode()), self.now)


@given(endings=st.lists(st.tuples(ENDINGS, st.booleans()), max_size=6), sends=st.lists(st.integers(0, 1), max_size=3))
def test_after_every_kind_of_end_nothing_is_held(world, endings, sends):
    counted = Counted(world, tokens_per_minute=10**6, concurrent_requests=100)
    for ending, is_twice in endings:
        allowed = counted.ask(max_tokens=100)
        assert isinstance(allowed, Allowed)
        for place in sends:
            allowed.admitted.sent_to(allowed.endpoints[place])
        allowed.admitted.end(ending)
        if is_twice:
            allowed.admitted.end(ending)
    assert counted.core.running == 0
    assert len(counted.ended) == len(endings)
    assert len(counted.core._budgets) == 0
    loads = counted.core._router._loads
    assert all(loads.in_flight(address) == 0 for address in ("127.0.0.1:9001", "127.0.0.1:9002"))


@given(ending=ENDINGS)
def test_whoever_got_output_pays_for_it(world, ending):
    counted = Counted(world, tokens_per_minute=10**6)
    allowed = counted.ask(max_tokens=100)
    allowed.admitted.sent_to(allowed.endpoints[0])
    allowed.admitted.end(ending)
    (ended,) = counted.ended
    if ending.events and ending.end not in {End.NO_ENGINE, End.REFUSED}:
        assert ended.settled.usage.output_tokens + ended.settled.usage.input_tokens > 0
        # Where nobody knows how it ended, all that was held is charged.
        assert ended.settled.basis in {Basis.USAGE, Basis.RESERVED if ending.end is End.UNKNOWN else Basis.COUNTED}


def test_a_stream_asks_for_its_usage_and_bounds_what_nobody_bounded(world):
    counted = Counted(world, tokens_per_minute=TOKENS)
    allowed = counted.ask(stream=True)
    body = json.loads(
        allowed.admitted.edited(
            json.dumps(
                {"model": "acme-chat", "messages": [{"role": "user", "content": "hello"}], "stream": True}
            ).encode()
        )
    )
    assert body["stream_options"] == {"include_usage": True}
    assert 0 < body["max_tokens"] <= TOKENS
    assert allowed.admitted.is_usage_injected


def test_without_limits_and_without_a_stream_the_body_stays_as_it_is(world):
    counted = Counted(world)
    allowed = counted.ask()
    assert allowed.admitted.edited(b"anything") == b"anything"
    assert not allowed.admitted.is_usage_injected


def test_two_requests_at_once_do_not_pass_a_limit_of_one_and_the_end_makes_room(world):
    counted = Counted(world, concurrent_requests=1)
    first = counted.ask()
    assert counted.ask().status == 429
    first.admitted.end(Ending(End.CLIENT_LEFT, 0, None))
    assert isinstance(counted.ask(), Allowed)


def test_a_request_that_never_arrives_is_given_up(world):
    counted = Counted(world, concurrent_requests=1)
    tickets = Tickets(lambda: "t")
    tickets.add(counted.ask().admitted, counted.now)
    tickets.expire(counted.now + LIFETIME_SECONDS - 1)
    assert (len(tickets), counted.core.running) == (1, 1)
    tickets.expire(counted.now + LIFETIME_SECONDS)
    assert (len(tickets), counted.core.running) == (0, 0)
    assert tickets.take("t") is None


def test_what_still_runs_is_not_given_up(world):
    counted = Counted(world, concurrent_requests=1)
    first = counted.ask()
    for _ in range(100):
        counted.now += 60
        counted.core.tick(counted.now)
    assert counted.ask().status == 429
    asyncio.run(first.admitted.turn())
    first.admitted.end(Ending(End.WHOLE, 200, TokenUsage(1, 0, 1)))
    assert isinstance(counted.ask(), Allowed)


def test_the_limits_stand_in_the_clients_answer(world):
    counted = Counted(world, requests_per_minute=10, tokens_per_minute=TOKENS)
    headers = dict(counted.ask(max_tokens=10).client_headers)
    assert headers["x-ratelimit-limit-requests"] == "10"
    assert headers["x-ratelimit-remaining-requests"] == "9"
    assert headers["x-ratelimit-limit-tokens"] == str(TOKENS)
    assert int(headers["x-ratelimit-remaining-tokens"]) < TOKENS


def test_a_field_that_can_not_be_meant_is_named(world):
    refused = Counted(world).ask(max_tokens=-1)
    error = json.loads(refused.body)["error"]
    assert (refused.status, error["param"], error["code"]) == (400, "max_tokens", "invalid_value")


def test_an_answer_that_a_filter_ended_without_a_word_is_charged_what_was_held(world):
    counted = Counted(world, tokens_per_minute=10**6)
    allowed = counted.ask(max_tokens=100)
    allowed.admitted.sent_to(allowed.endpoints[0])
    allowed.admitted.end(Ending(End.FILTERED, 200, None))
    assert counted.ended[0].settled.basis is Basis.RESERVED
