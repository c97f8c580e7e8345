"""Requests that Envoy takes to the engines itself: which may, what Envoy is told, and how their ends are read."""

import pytest

from fleet.snapshot import GatewayRoute, GatewayTenant
from gateway.access_log_service import EndedRequest
from gateway.asked import Request
from gateway.body_edits import Edit
from gateway.decision import DecisionCore
from gateway.envoy_presence import AWAY_SECONDS, REPORT_SECONDS, EnvoyPresence
from gateway.ext_authz import EDITS_HEADER, UNGUARDED_HEADER
from gateway.guardless import MOST_EDIT_BYTES, edit_words, needs_guard, words_for_envoy
from gateway.index import index_of
from gateway.passage import End
from gateway.paths import Operation
from gateway.token_usage import TokenUsage
from gateway.unguarded import UNHEARD_SECONDS, Unguarded, ending_of

ONE, TWO = "127.0.0.1:9001", "127.0.0.1:9002"
EDIT = (Edit(3, 3, b"ab"),)


class Moment:
    now = 1_900_000_000.0


def log(**stated):
    said = EndedRequest(
        request_id="r",
        ticket="t",
        status=200,
        flags=(),
        details="via_upstream",
        request_bytes=1,
        response_bytes=1,
        started_unix_seconds=1.0,
        duration_seconds=1.0,
        received_seconds=0.1,
        first_byte_seconds=0.5,
        endpoint=ONE,
        attempts=1,
        metadata={},
    )
    return said._replace(**stated)


def found(**values):
    return {"gateway": values}


USED = found(events=3.0, usage='{"prompt_tokens":5,"completion_tokens":2}')


@pytest.mark.parametrize(
    ("said", "end", "status", "usage", "events"),
    [
        (log(metadata=USED), End.WHOLE, 200, TokenUsage(5, 0, 2), 3),
        (log(status=400), End.WHOLE, 400, None, 0),
        (log(status=503), End.WHOLE, 503, None, 0),
        (log(flags=("DC",), details="x", metadata=found(events=4.0)), End.CLIENT_LEFT, 200, None, 4),
        (log(flags=("DC",), details="x", status=0, first_byte_seconds=None), End.CLIENT_LEFT, 0, None, 0),
        (log(flags=("UC",), details="upstream_reset_after_response_started"), End.ENGINE_LOST, 200, None, 0),
        (log(flags=("UC",), details="x", status=503, first_byte_seconds=None), End.ENGINE_LOST, 0, None, 0),
        (log(flags=("UF",), details="x", status=503, first_byte_seconds=None), End.NO_ENGINE, 0, None, 0),
        (log(flags=("UH",), details="x", status=503, endpoint="", first_byte_seconds=None), End.NO_ENGINE, 0, None, 0),
        (log(flags=("SI",), details="x", status=200), End.ENGINE_LATE, 200, None, 0),
        (log(metadata=found(usage="{"), status=200), End.WHOLE, 200, None, 0),
        (log(metadata=found(usage=True, events="many")), End.WHOLE, 200, None, 0),
    ],
)
def test_the_log_says_how_a_request_ended(said, end, status, usage, events):
    ending = ending_of(said)
    assert (ending.end, ending.status, ending.usage, ending.events) == (end, status, usage, events)


def test_edits_are_said_in_their_order_with_the_size_of_each():
    assert edit_words((Edit(9, 9, b',"a":1'), Edit(2, 4, b"x:y"))) == '2:4:3:x:y9:9:6:,"a":1'
    assert words_for_envoy((), is_stream=False, is_usage_injected=False) == ((UNGUARDED_HEADER, "whole"),)
    assert words_for_envoy((), is_stream=True, is_usage_injected=False) == ((UNGUARDED_HEADER, "kept"),)
    assert words_for_envoy(EDIT, is_stream=True, is_usage_injected=True) == (
        (UNGUARDED_HEADER, "injected"),
        (EDITS_HEADER, "3:3:2:ab"),
    )


def route(world, **more):
    return GatewayRoute(model="m", arms=(world.arm(),), is_guarded=False, **more)


def needs(world, edits=EDIT, operation=Operation.CHAT, stream=True, **more):
    made = route(world, **more)
    return needs_guard(made, made.arms[0], operation, {"stream": stream}, edits)


def test_what_needs_the_guard_never_goes_without_it(world):
    assert not needs(world)
    assert not needs(world, operation=Operation.EMBEDDING, stream=False)
    assert needs(world, output_filter="pii")
    assert needs(world, fallbacks=("other",))
    assert needs(world, concurrent_requests=5)
    assert needs(world, first_byte_seconds=5.0)
    assert needs(world, idle_seconds=5.0)
    assert needs(world, operation=Operation.RESPONSES)
    assert needs_guard(GatewayRoute(model="m", arms=(world.arm(),)), world.arm(), Operation.CHAT, {}, ())


@pytest.mark.parametrize("insert", [b"a\r\nx-evil: 1", b"\xc3\xa9", b"x" * (MOST_EDIT_BYTES + 1), b"end "])
def test_an_edit_that_can_not_stand_in_a_header_goes_through_the_guard(world, insert):
    assert needs(world, edits=(Edit(0, 0, insert),))


@pytest.fixture
def running(world):
    """A core with one request without the guard on its way, and what it told at the end."""
    ended, moment = [], Moment()
    core = DecisionCore(clock=lambda: moment.now, on_end=ended.append)
    snapshot = world.snapshot(ONE, TWO, is_guarded=False)
    limited = GatewayTenant(name="acme", concurrent_requests=1, tokens_per_minute=1000, default_output_tokens=10)
    core.replace(index_of(snapshot.model_copy(update={"tenants": (limited, *snapshot.tenants[1:])})), moment.now)
    unguarded = Unguarded(lambda: "t", lambda: moment.now)
    return core, unguarded, moment, ended


def decide(core, world, moment):
    headers = {"authorization": f"Bearer {world.acme_key}"}
    body = b'{"model":"acme-chat","messages":[{"role":"user","content":"hi"}]}'
    return core.decide(Request("POST", "/v1/chat/completions", headers, body), moment.now)


def test_a_request_counts_where_it_goes_until_the_log_tells_its_end(world, running):
    core, unguarded, moment, ended = running
    decision = decide(core, world, moment)
    assert dict(decision.headers_to_set)[UNGUARDED_HEADER] == "kept"
    assert unguarded.add(decision.admitted) == "t"
    assert [core.router._loads.in_flight(one) for one in decision.endpoints] == [1, 0]
    unguarded.ended([log(endpoint=decision.endpoints[1], metadata=USED), log(ticket="another's")])
    assert [core.router._loads.in_flight(one) for one in decision.endpoints] == [0, 0]
    assert (ended[0].address, ended[0].settled.usage) == (decision.endpoints[1], TokenUsage(5, 0, 2))
    unguarded.ended([log(metadata=USED)])
    assert (len(ended), len(unguarded), core.running) == (1, 0, 0)


def test_a_request_of_which_nothing_is_heard_is_charged_what_it_holds(world, running):
    core, unguarded, moment, ended = running
    unguarded.add(decide(core, world, moment).admitted)
    moment.now += UNHEARD_SECONDS - 1
    unguarded.still_running(["t", "unknown"])
    moment.now += UNHEARD_SECONDS - 1
    unguarded.expire(moment.now)
    assert not ended
    moment.now += 2
    unguarded.expire(moment.now)
    assert (ended[0].ending.end, ended[0].settled.basis.value, core.running) == (End.UNKNOWN, "reserved", 0)
    assert ended[0].settled.usage.output_tokens == 10
    assert decide(core, world, moment).admitted


@pytest.fixture
def seen(running):
    """The connections of an Envoy that has told of the request that runs, and what looks at them."""
    _, unguarded, moment, _ = running
    decisions, log = {"d"}, {"l"}
    unguarded.watch(EnvoyPresence(lambda: decisions, lambda: log))

    def look(seconds):
        for _ in range(seconds):
            moment.now += 1
            unguarded.expire(moment.now)

    return decisions, log, look


def test_with_envoy_gone_its_requests_end_within_seconds_and_are_charged_what_they_hold(world, running, seen):
    core, unguarded, moment, ended = running
    decisions, log, look = seen
    unguarded.add(decide(core, world, moment).admitted)
    look(5)
    decisions.clear(), log.clear()
    look(int(AWAY_SECONDS))
    assert not ended
    look(1)
    assert (ended[0].ending.end, ended[0].settled.basis.value, len(unguarded)) == (End.UNKNOWN, "reserved", 0)
    unguarded.add(decide(core, world, moment).admitted)
    decisions.add("d2")
    look(20)
    assert len(ended) == 1, "another Envoy has asked for it"


def test_an_envoy_that_is_back_at_once_has_to_tell_of_what_it_still_has(world, running, seen):
    core, unguarded, moment, ended = running
    decisions, log, look = seen
    unguarded.add(decide(core, world, moment).admitted)
    look(1)
    log.clear(), log.add("l2")
    look(9)
    unguarded.still_running(["t"])  # the connection alone was lost
    look(20)
    assert not ended
    log.clear(), log.add("l3"), decisions.clear()
    look(int(REPORT_SECONDS))
    assert not ended
    look(1)
    assert ended[0].ending.end is End.UNKNOWN


def test_one_lost_connection_of_several_and_an_envoy_without_a_log_yet_are_not_gone(world, running, seen):
    core, unguarded, moment, ended = running
    decisions, log, look = seen
    unguarded.add(decide(core, world, moment).admitted)
    log.add("l2")
    look(2)
    log.remove("l")
    look(20)
    log.clear()
    decisions.add("d")
    unguarded.still_running(["t"])
    unguarded.watch(EnvoyPresence(lambda: decisions, lambda: log))
    look(20)
    assert not ended
    unguarded.watch(None)
    decisions.clear()
    look(10)
    assert not ended, "who stops closes them himself"


def test_while_others_wait_a_request_goes_to_the_guard_where_it_waits_too(world, running, monkeypatch):
    core, _, moment, _ = running
    monkeypatch.setattr(core.router, "is_any_roomy", lambda *_: False)
    assert UNGUARDED_HEADER not in dict(decide(core, world, moment).headers_to_set)
