"""Clients that leave, through real Envoy: engines are free at once, and nothing is held for them any more."""

import time

import pytest

from tests.gateway.leaving import Client, HoldingEngine, ended, held, is_in_use, publish, request

AT_ONCE_SECONDS = 0.5
COUNT = 10
WAITING = 'enginehouse_gateway_requests_waiting{model="queued"}'


@pytest.fixture
def engine(gateway, world, until):
    made = HoldingEngine()
    gateway.servers.start(made)
    publish(gateway, world, made.address, concurrent_requests=COUNT)
    until(lambda: is_in_use(gateway), "the routes")
    yield made
    made.goes_on = True
    until(lambda: held(gateway) == 0, "nothing is held")


@pytest.mark.parametrize("abruptly", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("is_stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("model", ["guarded", "unguarded", "filtered"])
def test_engines_are_free_within_half_a_second(gateway, engine, world, until, model, is_stream, abruptly):
    before = ended(gateway, "client_left")
    clients = [Client(gateway).send(request(world.acme_key, model, is_stream=is_stream)) for _ in range(COUNT)]
    until(lambda: engine.asked == COUNT, "the engine has them")
    if is_stream:
        assert all(client.reads(b'"a"') for client in clients)
    late = Client(gateway).send(request(world.acme_key, model))
    assert (late.status, late.error()["code"]) == (429, "rate_limit_exceeded")  # each has its place
    started = time.monotonic()
    for client in clients:
        client.leave(abruptly=abruptly)
    until(lambda: len(engine.left_at) == COUNT, "the engine sees it", 5)
    assert max(engine.left_at) - started < AT_ONCE_SECONDS
    until(lambda: held(gateway) == 0, "nothing is held")
    assert ended(gateway, "client_left") == before + COUNT
    late.leave()


def test_who_leaves_the_queue_is_forgotten_and_never_asked(gateway, engine, world, until):
    first = Client(gateway).send(request(world.acme_key, "queued"))
    assert first.reads(b'"a"')
    waiting = [Client(gateway).send(request(world.acme_key, "queued")) for _ in range(COUNT - 1)]
    until(lambda: gateway.metric(WAITING) == COUNT - 1, "they wait")
    started = time.monotonic()
    for client in waiting:
        client.leave()
    until(lambda: gateway.metric(WAITING) == 0, "nobody waits")
    assert time.monotonic() - started < AT_ONCE_SECONDS
    first.leave()
    until(lambda: held(gateway) == 0, "nothing is held")
    assert engine.asked == 1


@pytest.mark.parametrize("model", ["guarded", "unguarded"])
def test_whoever_leaves_at_whatever_moment_leaves_nothing(gateway, engine, world, until, model):
    """Before, while and after it is decided, and while Envoy passes it on."""
    publish(gateway, world, engine.address)
    until(lambda: is_in_use(gateway), "no limit of requests at once")
    sent = request(world.acme_key, model)
    for number in range(300):
        client = Client(gateway).send(sent)
        end = time.monotonic() + number * 0.00002
        while time.monotonic() < end:
            pass
        client.leave(abruptly=bool(number % 2))
    until(lambda: held(gateway) == 0, "nothing is held", 3)
