"""The token bucket of each tenant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.snapshot import GatewayTenant
from gateway.limits import RequestLimits

GAPS = st.lists(st.floats(0, 30), min_size=1, max_size=200)


def tenant(limit, name="acme"):
    return GatewayTenant(name=name, requests_per_minute=limit)


@given(limit=st.integers(0, 120), gaps=GAPS)
def test_no_span_lets_more_through_than_the_bucket_and_its_refill(limit, gaps):
    limits, now, admitted = RequestLimits(), 1000.0, []
    for gap in gaps:
        now += gap
        if limits.take(tenant(limit), now).is_admitted:
            admitted.append(now)
    for first, start in enumerate(admitted):
        for last in range(first, len(admitted)):
            assert last - first + 1 <= limit * (1 + (admitted[last] - start) / 60) + 1e-6


@given(limit=st.integers(1, 600), gaps=GAPS)
def test_who_waits_as_told_is_admitted(limit, gaps):
    limits, now = RequestLimits(), 0.0
    for gap in gaps:
        now += gap
        answer = limits.take(tenant(limit), now)
        if not answer.is_admitted:
            now += answer.wait_seconds + 1e-6
            assert limits.take(tenant(limit), now).is_admitted


def test_without_a_limit_there_is_no_bucket():
    assert RequestLimits().take(tenant(None), 0.0) is None


def test_a_limit_of_zero_admits_nobody_ever():
    answer = RequestLimits().take(tenant(0), 0.0)
    assert not answer.is_admitted
    assert math.isinf(answer.wait_seconds)


def test_tenants_have_buckets_of_their_own():
    limits = RequestLimits()
    assert limits.take(tenant(1), 0.0).is_admitted
    assert not limits.take(tenant(1), 0.0).is_admitted
    assert limits.take(tenant(1, "globex"), 0.0).is_admitted


def test_a_clock_that_goes_back_gives_nothing_away():
    limits = RequestLimits()
    assert limits.take(tenant(1), 100.0).is_admitted
    assert not limits.take(tenant(1), 0.0).is_admitted
    assert not limits.take(tenant(1), 100.0).is_admitted


def test_a_smaller_limit_counts_at_once():
    limits = RequestLimits()
    assert limits.take(tenant(100), 0.0).remaining == 99
    assert limits.take(tenant(2), 0.0).remaining == 1


@pytest.mark.parametrize("kept", [(), ("globex",)])
def test_tenants_that_are_gone_are_forgotten(kept):
    limits = RequestLimits()
    limits.take(tenant(1), 0.0)
    limits.keep_only(kept)
    assert limits.take(tenant(1), 0.0).is_admitted
