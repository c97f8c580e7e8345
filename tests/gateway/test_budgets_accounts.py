"""The laws of single accounts, under any interleaving of holds and ends."""

from collections import defaultdict

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.accounts import ConcurrencyAccount
from gateway.calendar_account import CalendarAccount, Period
from gateway.token_bucket import TokenBucket

START = 1_900_000_000.0
AMOUNT = st.integers(1, 100)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 20.0, 60.0]) | st.floats(0, 40),
        st.sampled_from(["hold", "settle"]),
        AMOUNT,
        st.integers(0, 100),
    ),
    max_size=60,
)
LIMIT = st.integers(50, 200)


def played(account, steps, scale=1.0, beyond=0):
    """Hold what fits and settle the oldest: what was held or charged of each request, and when it was admitted."""
    now, running, done, number = START, [], [], 0
    for gap, what, amount, part in steps:
        now += gap * scale
        if what == "settle" and running:
            ended, at, held = running.pop(part % len(running))
            charged = min(amount, held) if not beyond else amount * beyond
            account.settle(ended, held, charged, now)
            done.append((at, min(held, charged), now, max(0, charged - held)))
        elif account.wait(amount, now) == 0:
            number += 1
            account.hold(number, amount, now)
            running.append((number, now, amount))
    return sorted(done + [(at, held, now, 0) for _, at, held in running]), now


@given(limit=LIMIT, steps=STEPS, beyond=st.sampled_from([0, 0, 3]))
def test_no_span_holds_or_is_charged_more_than_the_bucket_and_its_refill(limit, steps, beyond):
    requests, _ = played(TokenBucket(limit, START), steps, beyond=beyond)
    for first, (start, *_) in enumerate(requests):
        total = 0
        for at, amount, *_ in requests[first:]:
            total += amount
            assert total <= limit * (1 + (at - start) / 60) + 1e-6


ROUNDED = [(0.0, "hold", 72, 0), (0.0, "hold", 10, 0), (0.0, "hold", 25, 0), (0.0, "settle", 1, 1),
           (1.0, "hold", 35, 0), (20.0, "settle", 1, 0)]  # fmt: skip
"""Sums of parts of tokens come to a little more than a whole."""


@example(limit=106, steps=ROUNDED)
@given(limit=LIMIT, steps=STEPS)
def test_the_level_never_rises_above_the_limit_less_what_may_still_come_back(limit, steps):
    bucket = TokenBucket(limit, START)
    _, now = played(bucket, steps)
    assert bucket.level <= limit
    assert bucket.standing(now + 1e6).remaining == limit
    assert bucket.standing(now + 1e6).reset_seconds == 0


@given(limit=LIMIT, steps=STEPS)
def test_short_requests_get_back_all_that_they_did_not_use(limit, steps):
    bucket, used = TokenBucket(limit, START), 0
    for number, (_, _, amount, part) in enumerate(steps):
        if bucket.wait(amount, START) == 0:
            bucket.hold(number, amount, START)
            bucket.settle(number, amount, min(amount, part), START)
            used += min(amount, part)
    assert bucket.standing(START).remaining == limit - used


@given(limit=LIMIT, steps=STEPS, beyond=st.sampled_from([0, 0, 3]), period=st.sampled_from(list(Period)))
def test_no_window_holds_or_is_charged_more_than_its_limit(limit, steps, beyond, period):
    scale = 1000.0 if period is Period.DAY else 30_000.0
    requests, _ = played(CalendarAccount(limit, period, START), steps, scale, beyond)
    by_window = defaultdict(int)
    for at, amount, *_ in requests:
        by_window[CalendarAccount(limit, period, at).taken(at)[0]] += amount
    assert all(amount <= limit for amount in by_window.values())


@given(limit=LIMIT, steps=STEPS)
def test_debt_counts_in_the_window_where_it_is_made(limit, steps):
    account = CalendarAccount(limit, Period.MONTH, START)
    requests, now = played(account, steps, 1.0, beyond=2)
    charged = sum(amount + debt for _, amount, _, debt in requests)
    assert account.standing(now).remaining == max(0, limit - charged)


@given(limit=st.integers(0, 5), steps=STEPS)
def test_never_more_run_at_once_than_allowed_and_all_slots_come_back(limit, steps):
    account, running = ConcurrencyAccount(limit), 0
    for number, (_, what, *_) in enumerate(steps):
        if what == "settle" and running:
            account.settle(number, 1, 0, START)
            running -= 1
        elif account.wait(1, START) == 0:
            account.hold(number, 1, START)
            running += 1
        assert running <= limit
        assert account.standing(START).remaining == limit - running
