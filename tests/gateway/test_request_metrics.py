"""Metrics of requests in their path: what is measured of which request, and what leaves with the snapshot."""

import pytest
from prometheus_client import CollectorRegistry

from gateway.admitted import Ended
from gateway.billed import Billed
from gateway.index import index_of
from gateway.passage import End, Ending
from gateway.request_metrics import RequestMetrics
from gateway.reservations import Basis, Settled
from gateway.stopwatch import Times
from gateway.token_usage import TokenUsage

ONE, TWO = "127.0.0.1:9001", "127.0.0.1:9002"
FIRST = "enginehouse_gateway_time_to_first_token_seconds"
TOKEN = "enginehouse_gateway_time_per_output_token_seconds"
WHOLE = "enginehouse_gateway_request_seconds"
ENGINE = "enginehouse_gateway_requests_by_engine"


def ended(address=ONE, *, first=0.5, seconds=2.5, tokens=5, is_stream=True, end=End.WHOLE):
    usage = TokenUsage(10, 4, tokens)
    settled = Settled(1, "acme", "acme-chat", usage, Basis.USAGE)
    ending, times = Ending(end, 200, usage), Times(seconds, first)
    billed = Billed("k1", 1_900_000_000.0, None)
    return Ended("acme", "acme-chat", "chat", "0" * 32, address, ending, settled, billed, times, is_stream)


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def metrics(registry):
    return RequestMetrics(registry)


def sums(registry, name):
    labels = {"model": "acme-chat", "deployment": "chat"}
    return registry.get_sample_value(f"{name}_sum", labels), registry.get_sample_value(f"{name}_count", labels)


def test_a_whole_stream_is_measured_to_its_first_byte_and_for_each_token_after_it(registry, metrics):
    metrics.ended(ended(first=0.5, seconds=2.5, tokens=5))
    assert sums(registry, FIRST) == (0.5, 1)
    assert sums(registry, TOKEN) == (0.5, 1)
    assert sums(registry, WHOLE) == (2.5, 1)


@pytest.mark.parametrize(
    ("request_", "first", "token"),
    [
        (ended(is_stream=False), 0, 0),
        (ended(tokens=1), 1, 0),
        (ended(end=End.CLIENT_LEFT), 1, 0),
        (ended("", first=None, tokens=0, end=End.NO_ENGINE), 0, 0),
    ],
)
def test_what_says_nothing_about_an_engine_s_pace_is_not_measured(registry, metrics, request_, first, token):
    metrics.ended(request_)
    assert sums(registry, FIRST)[1] == first
    assert sums(registry, TOKEN)[1] == token
    assert sums(registry, WHOLE)[1] == 1


def test_what_left_the_snapshot_left_the_metrics(registry, metrics, world):
    def shown():
        families = {family.name: family for family in registry.collect()}
        found = {name: {sample.labels.get("endpoint", "") for sample in families[name].samples} for name in families}
        return found[ENGINE], bool(families[FIRST].samples)

    metrics.look(index_of(world.snapshot(ONE, TWO)))
    for address in (ONE, TWO):
        metrics.ended(ended(address))
    assert shown() == ({ONE, TWO}, True)
    metrics.look(index_of(world.snapshot(ONE)))
    assert shown() == ({ONE}, True)
    metrics.look(index_of(world.snapshot(ONE).model_copy(update={"routes": ()})))
    assert shown() == (set(), False)
    metrics.ended(ended(ONE))
    assert shown() == ({ONE}, True)
