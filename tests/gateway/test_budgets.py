"""Budgets by example: which one says no, what the client is told, and what each end costs."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.budget import ModelLimits, ModelPrice, TokenWeights
from fleet.snapshot import GatewayTenant
from gateway.budget_lines import Unit
from gateway.budgets import LIFETIME_SECONDS, Budgets
from gateway.calendar_account import CalendarAccount, Period, window_of
from gateway.exhausted import Exhausted
from gateway.rate_limit_headers import duration
from gateway.reservations import Basis, Demand, Reservation
from gateway.token_bucket import TokenBucket
from gateway.token_usage import TokenUsage

NOON = 1_900_065_600.0
MIDNIGHT = NOON + 12 * 3600
PRICE = ModelPrice(model="chat", usd_per_million_input_tokens=1, usd_per_million_output_tokens=10)


def budgets_with(prices=(), **limits):
    made = Budgets()
    made.replace({"acme": GatewayTenant(name="acme", **limits)}, prices, NOON)
    return made


def ask(budgets, input_tokens=10, output_tokens=90, now=NOON, model="chat", **more):
    return budgets.reserve("acme", model, Demand(input_tokens, output_tokens, **more), now)


def remaining(budgets, now=NOON, noun="tokens", model="chat"):
    return int(dict(budgets.headers("acme", model, now))[f"x-ratelimit-remaining-{noun}"])


def test_noon_is_noon():
    assert NOON % 86400 == 43200


def test_without_limits_everything_is_admitted_and_no_header_is_shown():
    budgets = budgets_with()
    assert isinstance(ask(budgets, 10**6, 10**6), Reservation)
    assert budgets.headers("acme", "chat", NOON) == ()


def test_what_is_not_used_comes_back():
    budgets = budgets_with(tokens_per_minute=1000)
    held = ask(budgets, 100, 400)
    assert remaining(budgets) == 500
    settled = budgets.settle(held.number, TokenUsage(90, 0, 10), NOON)
    assert settled.basis is Basis.USAGE
    assert remaining(budgets) == 900


def test_cached_input_is_cheaper_and_output_weighs_what_is_stated():
    budgets = budgets_with(tokens_per_minute=1000, weights=TokenWeights(cached_input_token=0.1, output_token=4))
    held = ask(budgets, 100, 100)
    assert remaining(budgets) == 500
    budgets.settle(held.number, TokenUsage(100, 80, 10), NOON)
    assert remaining(budgets) == 1000 - 20 - 8 - 40


def test_a_charge_above_the_hold_delays_the_next_request():
    budgets = budgets_with(tokens_per_minute=600)
    held = ask(budgets, 10, 90)
    budgets.settle(held.number, TokenUsage(700, 0, 100), NOON)
    answer = ask(budgets, 10, 90)
    assert isinstance(answer, Exhausted)
    assert answer.wait_seconds == pytest.approx(30)
    assert dict(answer.headers)["retry-after"] == "30"
    assert isinstance(ask(budgets, 10, 90, NOON + 30.1), Reservation)


def test_settling_twice_is_harmless():
    budgets = budgets_with(tokens_per_minute=1000, concurrent_requests=1)
    held = ask(budgets)
    assert budgets.settle(held.number, TokenUsage(10, 0, 0), NOON) is not None
    for again in (budgets.settle_reserved, budgets.fail, budgets.cancel):
        assert again(held.number, NOON) is None
    assert budgets.settle(held.number, TokenUsage(999, 0, 999), NOON) is None
    assert remaining(budgets) == 990
    assert isinstance(ask(budgets), Reservation)
    assert isinstance(ask(budgets), Exhausted)


@pytest.mark.parametrize(
    ("end", "tokens", "requests"),
    [
        (lambda b, n: b.settle(n, TokenUsage(10, 0, 20), NOON), 970, 9),
        (lambda b, n: b.settle_counted(n, 20, NOON), 970, 9),
        (lambda b, n: b.settle_counted(n, 0, NOON), 989, 9),
        (lambda b, n: b.settle(n, TokenUsage(0, 0, 0), NOON), 989, 9),
        (lambda b, n: b.settle_reserved(n, NOON), 900, 9),
        (lambda b, n: b.fail(n, NOON), 1000, 9),
        (lambda b, n: b.cancel(n, NOON), 1000, 10),
    ],
)
def test_each_end_has_its_price(end, tokens, requests):
    budgets = budgets_with(tokens_per_minute=1000, requests_per_minute=10, concurrent_requests=1)
    end(budgets, ask(budgets).number)
    assert remaining(budgets) == tokens
    assert remaining(budgets, noun="requests") == requests
    assert isinstance(ask(budgets), Reservation)


def test_a_request_without_output_is_not_charged_any():
    budgets = budgets_with(tokens_per_minute=1000)
    held = ask(budgets, 10, 0)
    assert budgets.settle_counted(held.number, 0, NOON).usage == TokenUsage(10, 0, 0)


def test_a_stream_that_is_heard_of_lives_on_and_one_that_is_not_is_charged_whole():
    budgets = budgets_with(tokens_per_day=1000, concurrent_requests=2)
    silent, heard = ask(budgets), ask(budgets)
    budgets.renew(heard.number, NOON + LIFETIME_SECONDS - 1)
    (settled,) = budgets.expire(NOON + LIFETIME_SECONDS)
    assert (settled.number, settled.basis) == (silent.number, Basis.RESERVED)
    assert budgets.settle(silent.number, TokenUsage(1, 0, 1), NOON + 1000) is None
    budgets.cancel(heard.number, NOON + 1000)
    assert remaining(budgets) == 900


def test_a_model_has_limits_within_those_of_the_tenant():
    budgets = budgets_with(tokens_per_minute=1000, models=(ModelLimits(model="code", tokens_per_minute=100),))
    answer = ask(budgets, 100, 100, model="code")
    assert (answer.unit, answer.model, answer.limit) == (Unit.TOKENS_PER_MINUTE, "code", 100)
    assert "for the model 'code'" in answer.message
    assert isinstance(ask(budgets, 100, 800, model="chat"), Reservation)
    assert ask(budgets, 50, 51, model="code").wait_seconds == float("inf")
    assert isinstance(ask(budgets, 50, 50, model="code"), Reservation)
    assert remaining(budgets, model="code") == 0
    assert remaining(budgets, model="chat") == 0


def test_an_output_that_nobody_asked_for_is_cut_so_that_four_of_them_fit():
    budgets = budgets_with(tokens_per_minute=1000, weights=TokenWeights(output_token=2))
    held = ask(budgets, 100, 32_768, is_output_stated=False)
    assert held.output_tokens == 112
    assert remaining(budgets) == 676
    assert ask(budgets, 0, 32_768, is_output_stated=False).output_tokens == 125
    asked_for = ask(budgets, 100, 32_768)
    assert asked_for.wait_seconds == float("inf")
    assert "max_tokens" in asked_for.message


def test_an_input_that_never_fits_is_told_so_at_once():
    answer = ask(budgets_with(tokens_per_minute=100), 101, 500, is_output_stated=False)
    assert answer.wait_seconds == float("inf")
    assert "retry-after" not in dict(answer.headers)
    assert answer.message == (
        "This request may use more (102) than the limit of 100 tokens per minute ever allows. "
        "Send a shorter prompt, or ask for fewer tokens with 'max_tokens'."
    )


def test_the_budget_that_frees_last_is_the_one_that_is_named():
    budgets = budgets_with(requests_per_minute=1, tokens_per_day=150)
    budgets.settle_reserved(ask(budgets).number, NOON)
    answer = ask(budgets)
    assert answer.unit is Unit.TOKENS_PER_DAY
    assert answer.wait_seconds == 12 * 3600
    assert isinstance(ask(budgets, now=MIDNIGHT), Reservation)


def test_a_running_request_that_is_in_the_way_is_worth_another_try_soon():
    for limits in ({"tokens_per_day": 150}, {"concurrent_requests": 1}):
        budgets = budgets_with(**limits)
        ask(budgets)
        assert dict(ask(budgets).headers)["retry-after"] == "1"


def test_a_request_over_midnight_counts_where_it_was_admitted_and_its_excess_where_it_ends():
    budgets = budgets_with(tokens_per_day=1000)
    late = ask(budgets, 10, 90, MIDNIGHT - 1)
    assert remaining(budgets, MIDNIGHT - 1) == 900
    assert remaining(budgets, MIDNIGHT) == 1000
    budgets.settle(late.number, TokenUsage(10, 0, 190), MIDNIGHT + 1)
    assert remaining(budgets, MIDNIGHT + 1) == 900
    assert remaining(budgets, MIDNIGHT - 1) == 900


def test_a_clock_set_back_over_midnight_finds_what_was_used():
    account = CalendarAccount(100, Period.DAY, MIDNIGHT - 1)
    account.hold(1, 60, MIDNIGHT - 1)
    account.hold(2, 70, MIDNIGHT + 1)
    assert account.standing(MIDNIGHT - 0.5).remaining == 40
    assert account.standing(MIDNIGHT + 2).remaining == 30


def test_money_is_counted_by_price_and_an_unpriced_model_is_refused():
    budgets = budgets_with((PRICE,), usd_per_month=0.001)
    held = ask(budgets, 100, 90)
    budgets.settle(held.number, TokenUsage(100, 0, 50), NOON)
    assert isinstance(ask(budgets, 100, 30), Reservation)
    answer = ask(budgets, 100, 31)
    assert (answer.unit, answer.code) == (Unit.USD_PER_MONTH, "insufficient_quota")
    assert "0.0010 USD per month" in answer.message
    unpriced = ask(budgets, model="code")
    assert unpriced.wait_seconds == float("inf")
    assert "no price" in unpriced.message


def test_a_limit_of_zero_admits_nobody_ever():
    for unit in ("tokens_per_minute", "requests_per_minute", "tokens_per_day", "concurrent_requests"):
        answer = ask(budgets_with(**{unit: 0}))
        assert answer.wait_seconds == float("inf")
        assert "may send none" in answer.message


def test_changed_limits_count_at_once_and_keep_what_was_used():
    budgets = budgets_with(tokens_per_minute=1000, tokens_per_day=1000)
    budgets.settle_reserved(ask(budgets, 100, 400).number, NOON)
    for tokens, left in ((300, 300), (600, 300)):
        acme = GatewayTenant(name="acme", tokens_per_minute=tokens)
        budgets.replace({"acme": acme}, (), NOON)
        assert remaining(budgets) == left
    budgets.replace({"acme": GatewayTenant(name="acme")}, (), NOON)
    assert isinstance(ask(budgets, 10**6), Reservation)


def test_a_tenant_that_is_gone_can_still_be_settled():
    budgets = budgets_with(tokens_per_minute=1000)
    held = ask(budgets)
    budgets.replace({}, (), NOON)
    assert budgets.settle(held.number, TokenUsage(1, 0, 1), NOON) is not None
    with pytest.raises(KeyError):
        ask(budgets)


def test_long_requests_that_end_together_are_no_second_burst():
    bucket = TokenBucket(1000, 0)
    for number in range(10):
        bucket.hold(number, 1000, 60.0 * number)
        bucket.wait(0, 60.0 * (number + 1))
    taken = 0
    for number in range(10):
        bucket.settle(number, 1000, 0, 600)
        while bucket.wait(100, 600) == 0:
            bucket.hold(100 + taken, 100, 600)
            taken += 100
    assert taken == 1000


def test_requests_are_never_shown_a_prompt_or_a_key():
    answer = ask(budgets_with(tokens_per_minute=1))
    assert re.fullmatch(r"[A-Za-z0-9 .,()'_]+", answer.message)


@given(seconds=st.floats(0, 10**7))
def test_a_duration_is_never_shorter_than_what_it_says_and_reads_as_openai_writes_it(seconds):
    text = duration(seconds)
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?|(\d+)ms", text)
    assert parts
    hours, minutes, whole, milliseconds = (int(part or 0) for part in parts.groups())
    told = hours * 3600 + minutes * 60 + whole + milliseconds / 1000
    assert seconds <= told + 1e-9
    assert told <= seconds + 1.001


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.0195, "20ms"), (0.9999, "1s"), (1, "1s"), (360, "6m0s"), (3600, "1h0m0s"), (86399.5, "24h0m0s")],
)
def test_durations_in_openais_form(seconds, text):
    assert duration(seconds) == text


@given(moment=st.floats(0, 4e9), period=st.sampled_from(list(Period)))
def test_every_moment_lies_in_its_window_and_windows_meet(moment, period):
    start, end = window_of(period, moment)
    assert start <= moment < end
    assert start % 86400 == end % 86400 == 0
    assert window_of(period, end)[0] == end
    assert end - start == 86400 if period is Period.DAY else 28 * 86400 <= end - start <= 31 * 86400


def test_a_refusal_is_a_value_that_can_be_compared():
    answer = ask(budgets_with(requests_per_minute=0))
    assert answer == replace(answer)
