"""Counters that return to zero however requests end, queues that drain, and metrics that age."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.load import DEFAULT_PREFILL_TOKENS_PER_SECOND, EngineMetrics, LoadBook

ADDRESSES = ("a:1", "b:1")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "first_token", "end", "end", "restart", "measure", "look", "leave"]),
        st.integers(0, 30),
        st.floats(0, 3),
        st.integers(0, 50_000),
        st.booleans(),
    ),
    max_size=60,
)


@given(STEPS)
def test_counters_return_to_zero_whatever_happens_in_between(steps):
    book, now, sent = LoadBook(), 0.0, []
    for kind, number, seconds, tokens, is_watched in steps:
        now += seconds
        address = ADDRESSES[number % 2]
        if kind == "start":
            sent.append(book.start(address, tokens, now, is_watched=is_watched))
        elif kind in ("first_token", "end"):
            for request in sent[number : number + 1]:
                getattr(request, kind)(now)
        else:
            happen(book, kind, address, EngineMetrics(now - tokens / 1e4, waiting=number))
        for load in book.loads(ADDRESSES, now):
            assert load.in_flight >= 0
            assert 0 <= load.queued_tokens < math.inf
            assert load.tokens_per_second > 0
    for request in sent:
        request.end(now)
        request.end(now + 1)
        request.first_token(now + 1)
        assert request.has_ended
    # Others' requests are known from metrics; long after those, only own ones count.
    loads = book.loads(ADDRESSES, now + 1000)
    assert [(load.in_flight, load.queued_tokens) for load in loads] == [(0, 0.0)] * 2


def happen(book, kind, address, metrics):
    if kind == "restart":
        book.restarted(address)
    elif kind == "leave":
        book.keep_only({address})
    elif kind == "measure":
        book.measured(address, metrics)


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=20), st.floats(0, 1))
def test_the_queue_of_a_first_come_first_served_engine_is_known_at_every_moment(prompts, share):
    book = LoadBook()
    sent = [book.start("a:1", tokens, 0.0) for tokens in prompts]
    whole = sum(prompts) / DEFAULT_PREFILL_TOKENS_PER_SECOND
    now = whole * share
    done_at = 0.0
    for request in sent:
        done_at += request.tokens / DEFAULT_PREFILL_TOKENS_PER_SECOND
        if done_at <= now:
            request.first_token(done_at)
    (load,) = book.loads(["a:1"], now)
    assert load.queued_tokens == pytest.approx((whole - now) * DEFAULT_PREFILL_TOKENS_PER_SECOND, abs=1.0)
    assert load.tokens_per_second == pytest.approx(DEFAULT_PREFILL_TOKENS_PER_SECOND)


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=20), st.floats(0, 2))
def test_unwatched_prompts_drain_at_the_known_rate(prompts, share):
    book = LoadBook()
    for tokens in prompts:
        book.start("a:1", tokens, 0.0, is_watched=False)
    now = share * sum(prompts) / DEFAULT_PREFILL_TOKENS_PER_SECOND
    (load,) = book.loads(["a:1"], now)
    assert load.queued_tokens == pytest.approx(max(0.0, sum(prompts) * (1 - share)), abs=1.0)
    assert load.in_flight == len(prompts)


@given(st.floats(1_000, 40_000))
def test_the_rate_of_an_engine_is_learned(rate):
    book, now = LoadBook(), 0.0
    for _ in range(50):
        request = book.start("a:1", 8_000, now)
        now += 8_000 / rate
        request.first_token(now)
        request.end(now + 1)
        now += 5
    (load,) = book.loads(["a:1"], now)
    assert load.tokens_per_second == pytest.approx(rate)
    # Another endpoint, of which nothing is known, is taken for as fast: it would get nothing otherwise.
    assert [other.tokens_per_second for other in book.loads(["a:1", "b:1"], now)] == [load.tokens_per_second] * 2


def test_an_aborted_prompt_teaches_no_rate():
    book = LoadBook()
    book.start("a:1", 8_000, 0.0).end(500.0)
    (load,) = book.loads(["a:1"], 500.0)
    assert load.tokens_per_second == DEFAULT_PREFILL_TOKENS_PER_SECOND


@given(own=st.integers(0, 5), others=st.integers(0, 20), late=st.floats(0, 0.9))
def test_requests_of_other_gateways_are_seen_in_the_metrics(own, others, late):
    book = LoadBook()
    for _ in range(own):
        book.start("a:1", 1_000, 0.0)
    book.measured("a:1", EngineMetrics(0.5, waiting=own + others))
    book.measured("b:1", EngineMetrics(0.5))
    busy, idle = book.loads(["a:1", "b:1"], 0.5 + late)
    assert idle.queued_tokens == 0
    expected = own * 1_000 + others * 1_000
    assert busy.queued_tokens == pytest.approx(expected - (min(1_000, (0.5 + late) * 10_000) if own else 0), abs=1.0)


@given(st.floats(0, 12))
def test_late_metrics_are_compared_with_what_was_sent_at_that_time(late):
    book = LoadBook()
    sent = [book.start("a:1", 1_000, float(second) / 10) for second in range(5)]
    for request in sent:
        request.end(1.0)
    book.measured("a:1", EngineMetrics(0.5, waiting=5))
    (load,) = book.loads(["a:1"], 0.5 + late)
    assert load.queued_tokens == 0 or late < 0.5


@given(st.floats(1.01, 14), st.integers(1, 9))
def test_an_endpoint_with_stale_metrics_is_no_better_than_the_busiest_fresh_one(age, waiting):
    book = LoadBook()
    book.measured("a:1", EngineMetrics(0.0))
    book.measured("b:1", EngineMetrics(age, waiting=waiting))
    stale, fresh, never = book.loads(["a:1", "b:1", "c:1"], age)
    assert stale.queued_tokens == fresh.queued_tokens == never.queued_tokens > 0
    assert stale.saturation >= 1.0
    assert fresh.saturation == waiting / 5


def test_metrics_that_arrive_out_of_order_change_nothing():
    book = LoadBook()
    book.measured("a:1", EngineMetrics(2.0, kv_usage=0.4))
    book.measured("a:1", EngineMetrics(1.0, kv_usage=0.9))
    (load,) = book.loads(["a:1"], 2.0)
    assert load.kv_usage == 0.4
    assert load.saturation == pytest.approx(0.5)


@given(st.integers(0, 100_000), st.floats(0, 1_000))
def test_what_was_given_fades(tokens, seconds):
    assume(tokens)
    book = LoadBook()
    book.start("a:1", tokens, 0.0).end(0.0)
    (load,) = book.loads(["a:1"], seconds)
    assert load.given_tokens == pytest.approx(tokens * math.exp(-seconds / 60))
