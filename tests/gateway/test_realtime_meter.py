"""Laws of what a realtime session holds: every answer once, whoever began it, and nothing is left."""

import json

from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayTenant
from gateway.budgets import Budgets
from gateway.exhausted import Exhausted
from gateway.passage import End
from gateway.realtime_meter import ASKS, RealtimeMeter
from gateway.reservations import Basis, Demand
from gateway.session_budget import SessionBudget
from gateway.token_usage import TokenUsage

USAGE = {"input_tokens": 30, "output_tokens": 7}


class Leg:
    """A model without a bound on its answers."""

    model = "voice"

    class route:
        max_output_tokens = 50


def metered(**limits):
    tenant = GatewayTenant(name="acme", **limits)
    budgets, ended = Budgets(), []
    budgets.replace({"acme": tenant}, (), 0.0)
    holds = SessionBudget(budgets, Leg, tenant, lambda: 1.0, lambda *told: ended.append(told))
    return RealtimeMeter(holds), budgets, ended


def client(meter, kind, **members):
    message = {"type": kind, **members}
    return meter.client_said(message, len(json.dumps(message)))


def engine(meter, kind, **members):
    return meter.engine_said({"type": kind, **members})


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["client", "engine"]),
        st.sampled_from([ASKS, "response.created", "a.delta", "response.done", "transcription.done", "error", "x"]),
        st.booleans(),
    ),
    max_size=40,
)


@given(STEPS, st.sampled_from([None, 40, 200, 10_000]))
def test_whatever_is_said_in_whatever_order_nothing_is_held_when_it_is_over(steps, tokens):
    meter, budgets, ended = metered(tokens_per_minute=tokens)
    for side, kind, has_usage in steps:
        if side == "client":
            client(meter, kind)
        else:
            engine(meter, kind, **({"usage": USAGE} if has_usage else {}))
        assert meter.is_idle == (not len(budgets))
    meter.close(End.CLIENT_LEFT)
    assert len(budgets) == 0
    assert all(settled is not None for settled, *_ in ended)


def test_an_answer_that_ended_without_a_beginning_is_not_taken_back_by_a_later_error():
    meter, budgets, ended = metered()
    client(meter, ASKS)
    engine(meter, "response.done", usage=USAGE)
    engine(meter, "error")
    assert meter.is_idle
    assert len(budgets) == 0
    assert len(ended) == 1


def test_an_answer_is_charged_by_the_engines_figures_wherever_they_stand():
    meter, _, ended = metered()
    client(meter, ASKS)
    engine(meter, "response.created")
    engine(meter, "response.done", response={"usage": {**USAGE, "input_token_details": {"cached_tokens": 20}}})
    engine(meter, "transcription.delta")
    engine(meter, "transcription.done", usage={"prompt_tokens": 5, "completion_tokens": 2})
    assert [settled.usage for settled, *_ in ended] == [TokenUsage(30, 20, 7), TokenUsage(5, 0, 2)]


def test_an_answer_that_is_left_is_charged_by_what_came_of_it():
    meter, _, ended = metered()
    client(meter, "session.update", session={"instructions": "x" * 400})
    client(meter, ASKS)
    engine(meter, "response.created")
    for _ in range(3):
        engine(meter, "response.audio.delta")
    meter.close(End.CLIENT_LEFT)
    [(settled, ending, _)] = ended
    assert settled.basis is Basis.COUNTED
    assert settled.usage.output_tokens == ending.events == 3
    assert settled.usage.input_tokens > 100


def test_an_answer_that_the_engine_refuses_is_not_charged():
    meter, budgets, ended = metered(tokens_per_minute=100)
    client(meter, ASKS)
    engine(meter, "error")
    assert (len(budgets), ended) == (0, [])
    assert client(meter, ASKS) is None


def test_an_answer_holds_what_was_said_before_and_the_longest_that_was_asked_for():
    meter, _, _ = metered(tokens_per_minute=120)
    client(meter, ASKS, response={"max_output_tokens": 10})
    engine(meter, "response.created")
    engine(meter, "response.done", response={"usage": {"input_tokens": 40, "output_tokens": 5}})
    assert isinstance(client(meter, ASKS, response={"max_output_tokens": 30}), Exhausted)  # 45 + its own + 30 > 75
    assert client(meter, ASKS, response={"max_output_tokens": 5}) is None


def test_a_session_is_one_of_the_requests_at_once_with_all_its_answers():
    meter, budgets, _ = metered(concurrent_requests=1)
    assert not isinstance(budgets.reserve("acme", "voice", Demand(0, 0), 0.0), Exhausted)
    assert client(meter, ASKS) is None
    assert isinstance(budgets.reserve("acme", "voice", Demand(0, 0), 0.0), Exhausted)
