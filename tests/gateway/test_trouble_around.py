"""Trouble around a running gateway: a full disk, snapshots without end, engines that come and go."""

import itertools
import json
import resource
import threading
from pathlib import Path

import pytest

from tests.gateway.leaving import ROUTES, Client, HoldingEngine, held, is_in_use, publish, request

FAILURES = (
    "enginehouse_gateway_sync_failures_total",
    "enginehouse_gateway_budget_save_failures_total",
    "enginehouse_gateway_usage_disk_failures_total",
)


@pytest.fixture
def engines(gateway):
    made = HoldingEngine(goes_on=True), HoldingEngine(name="other", goes_on=True)
    for engine in made:
        gateway.servers.start(engine)
    return made


@pytest.fixture
def full_disk(gateway):
    """Fills the disk for the gateway alone: no file of its may grow."""

    def fill(is_full):
        _, hard = resource.prlimit(gateway.decision.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(gateway.decision.pid, resource.RLIMIT_FSIZE, (0 if is_full else hard, hard))

    yield fill
    fill(False)


def ask(gateway, world, model, *, is_stream=False):
    client = Client(gateway).send(request(world.acme_key, model, is_stream=is_stream))
    status = client.status
    client.leave()
    return status


def test_on_a_full_disk_the_gateway_follows_and_serves_and_catches_up_when_there_is_room(
    gateway, engines, world, until, full_disk
):
    publish(gateway, world, engines[0].address, tokens_per_day=1_000_000)
    until(lambda: is_in_use(gateway), "the first snapshot")
    before = [gateway.metric(name) for name in FAILURES]
    full_disk(True)
    routes = {"newer": {}, **ROUTES}
    publish(gateway, world, engines[0].address, tokens_per_day=2_000_000, routes=routes)
    until(lambda: ask(gateway, world, "newer") == 200, "the newer snapshot is in use")
    until(
        lambda: all(gateway.metric(name) > then for name, then in zip(FAILURES, before, strict=True)),
        "the failures are counted",
    )
    assert not is_in_use(gateway)
    assert gateway.decision.poll() is None
    full_disk(False)
    until(lambda: is_in_use(gateway), "the snapshot in use is on disk")  # though nothing was published since
    budgets = Path(str(gateway.settings["state_dir"])) / "budgets.json"
    until(lambda: budgets.exists() and json.loads(budgets.read_bytes()), "the budgets are on disk")


def test_snapshots_without_end_fail_no_request(gateway, engines, world, until):
    """Every 50 ms another set of endpoints, limits and routes, with and without the guard."""
    one, two = engines
    answers, is_over = [], threading.Event()

    def load(model, is_stream):
        while not is_over.is_set():
            answers.append(ask(gateway, world, model, is_stream=is_stream))

    publish(gateway, world, one.address)
    until(lambda: ask(gateway, world, "unguarded") == 200, "the routes")
    kinds = [("guarded", True), ("unguarded", False), ("filtered", False)]
    threads = [threading.Thread(target=load, args=kind) for kind in kinds]
    for thread in threads:
        thread.start()
    sets = itertools.cycle([(one.address,), (one.address, two.address), (two.address,)])
    for number, addresses in zip(range(40), sets, strict=False):
        publish(gateway, world, *addresses, requests_per_minute=1_000_000 + number)
        is_over.wait(0.05)
    until(lambda: is_in_use(gateway), "the last snapshot")
    is_over.set()
    for thread in threads:
        thread.join(10)
    assert len(answers) > 10
    assert set(answers) == {200}
    assert one.asked
    assert two.asked
    until(lambda: held(gateway) == 0, "nothing is held")


def test_an_endpoint_that_is_removed_finishes_its_streams(gateway, engines, world, until):
    one, two = engines
    one.goes_on = False
    publish(gateway, world, one.address)
    until(lambda: is_in_use(gateway), "the first engine")
    clients = [Client(gateway).send(request(world.acme_key, model)) for model in ("guarded", "unguarded", "filtered")]
    assert all(client.reads(b'"a"') for client in clients)
    publish(gateway, world, two.address)
    until(lambda: is_in_use(gateway), "the other engine")
    assert ask(gateway, world, "guarded") == 200
    assert (one.asked, two.asked) == (3, 1)
    one.goes_on = True
    for client in clients:
        got = client.reads_to_the_end()
        client.leave()
        assert got.endswith(b"0\r\n\r\n")
        assert b"[DONE]" in got
        assert b"error" not in got
    until(lambda: held(gateway) == 0, "nothing is held")
