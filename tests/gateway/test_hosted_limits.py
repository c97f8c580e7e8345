"""Hosted engines get no more than what they let through by the minute."""

from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayArm, HostedEndpoint
from gateway.arms import pool_of
from gateway.hosted_limits import HostedLimits

SPAN = 60.0


def hosted(name="groq", **limits):
    endpoint = HostedEndpoint(url="https://api.example.com/v1", model="m", api_key_ref="k", **limits)
    return GatewayArm(deployment=name, identity="0" * 32, engine="groq", hosted=endpoint)


def limits_of(*arms, now=0.0):
    made = HostedLimits()
    made.replace(arms, now)
    return made


@given(limit=st.integers(1, 500), waits=st.lists(st.floats(0, 5), max_size=60))
def test_whoever_waits_as_told_never_sends_more_than_the_limit(limit, waits):
    arm = hosted(requests_per_minute=limit)
    made, now, free_at, sent = limits_of(arm), 0.0, 0.0, []
    for wait in waits:
        now = max(now + wait, free_at)
        sent.append(now)
        free_at = made.sent(pool_of(arm), now)
    for start in sent:
        in_span = sum(start <= at < start + SPAN for at in sent)
        assert in_span <= 2 * limit  # a minute's worth at once, and what has come meanwhile
    assert sum(at < SPAN for at in sent) <= limit * (1 + 1) + 1e-6


@given(tokens=st.lists(st.integers(0, 10_000), min_size=1, max_size=20))
def test_tokens_beyond_the_limit_keep_it_closed_until_they_have_drained(tokens):
    arm = hosted(tokens_per_minute=600)
    made = limits_of(arm)
    free_at = [made.used(pool_of(arm), count, 0.0) for count in tokens][-1]
    beyond = sum(tokens) - 600 + 1
    assert free_at == max(0.0, beyond / 10.0)


def test_without_limits_nobody_waits():
    made = limits_of(hosted(), hosted("other", requests_per_minute=1))
    assert made.sent(pool_of(hosted()), 5.0) == 5.0
    assert made.used("10.0.0.1:1", 10**6, 5.0) == 5.0


def test_another_snapshot_does_not_give_back_what_was_taken():
    arm = hosted(requests_per_minute=1)
    made = limits_of(arm)
    assert made.sent(pool_of(arm), 0.0) == 60.0
    made.replace([arm], 30.0)
    assert made.sent(pool_of(arm), 60.0) == 120.0
    made.replace([hosted(requests_per_minute=60)], 60.0)
    assert made.sent(pool_of(arm), 60.0) == 60.0
    made.replace([], 60.0)
    assert made.sent(pool_of(arm), 60.0) == 60.0
