"""The gateway's processes stopped and killed in the middle: nothing passes, nothing lies, nothing is left."""

import signal
import threading
import time
from pathlib import Path

import pytest

from gateway.http_protocol import UNREAD_SECONDS
from tests.gateway.leaving import Client, HoldingEngine, ended, held, is_in_use, publish, request

LAST_PIECE = b"\r\n0\r\n\r\n"
STREAMING = ("guarded", "unguarded", "filtered")


@pytest.fixture
def start(gateway_maker, world, until):
    """Starts a gateway; gives it and its engine."""

    def start_one(**settings):
        gateway, engine = gateway_maker(), HoldingEngine()
        gateway.settings |= settings
        gateway.servers.start(engine)
        publish(gateway, world, engine.address)
        gateway.start_decision()
        gateway.start_envoy()
        until(lambda: is_in_use(gateway), "the routes")
        return gateway, engine

    return start_one


def test_told_to_stop_under_load_it_finishes_what_it_has_admitted(start, world, until):
    gateway, engine = start(drain_seconds=30)
    streams = [Client(gateway).send(request(world.acme_key, model)) for model in STREAMING]
    assert all(stream.reads(b'"a"') for stream in streams)
    engine_two = HoldingEngine(goes_on=True)
    gateway.servers.start(engine_two)
    publish(gateway, world, engine_two.address)
    until(lambda: is_in_use(gateway), "another engine")
    answers, is_over = [], threading.Event()

    def load():
        while not is_over.is_set():
            client = Client(gateway).send(request(world.acme_key, "guarded", is_stream=False))
            answers.append((client.status, None if client.status == 200 else client.error()["code"]))
            client.leave()

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(answers) > 20, "some answers")
    gateway.decision.send_signal(signal.SIGTERM)
    until(lambda: answers[-1][0] == 503, "refusals")
    is_over.set()
    for thread in threads:
        thread.join(10)
    assert set(answers) == {(200, None), (503, "internal_error")}  # which is what Envoy says where nobody decides
    assert answers.count((200, None)) == engine_two.asked  # none of which it had began was lost
    assert gateway.decision.poll() is None
    engine.goes_on = True
    for stream in streams:
        assert stream.reads_to_the_end().endswith(LAST_PIECE)
        assert b"[DONE]" in stream.got
        stream.leave()
    assert gateway.decision.wait(20) == 0
    assert not Path(str(gateway.settings["ready_file"])).exists()
    assert not list(gateway.folder.glob("d.sock*"))


def test_killed_it_lets_nothing_pass_and_starts_again_on_what_is_left(start, world, until):
    gateway, engine = start()
    streams = {model: Client(gateway).send(request(world.acme_key, model)) for model in STREAMING}
    assert all(stream.reads(b'"a"') for stream in streams.values())
    gateway.end(gateway.decision, signal.SIGKILL)
    for model in ("guarded", "filtered"):
        assert not streams[model].reads_to_the_end().endswith(LAST_PIECE)  # cut, and no clean end
        streams[model].leave()
    for _ in range(10):
        client = Client(gateway).send(request(world.acme_key, "unguarded"))
        assert (client.status, client.error()["type"]) == (503, "server_error")
        client.leave()
    assert engine.asked == len(streams)
    engine.goes_on = True
    assert streams["unguarded"].reads_to_the_end().endswith(LAST_PIECE)  # Envoy has it
    streams["unguarded"].leave()
    state = Path(str(gateway.settings["state_dir"]))
    kept = (state / "snapshot.json").read_bytes()
    url, gateway.settings["control_plane_url"] = gateway.settings["control_plane_url"], "http://127.0.0.1:1"
    for damaged in (kept[: len(kept) // 2], b'{"version": 999, "new": 1}'):
        (state / "snapshot.json").write_bytes(damaged)
        (state / "budgets.json").write_bytes(b"\x00" * 100)
        Path(str(gateway.settings["ready_file"])).unlink(missing_ok=True)
        gateway.start_decision()
        client = Client(gateway).send(request(world.acme_key, "guarded"))
        assert (client.status, client.error()["type"]) == (503, "server_error")
        client.leave()
        assert gateway.end(gateway.decision) == 0
    gateway.settings["control_plane_url"] = url
    gateway.start_decision()
    until(lambda: is_in_use(gateway), "the control plane's snapshot instead of the damaged one")
    client = Client(gateway).send(request(world.acme_key, "guarded"))
    assert client.reads_to_the_end().endswith(LAST_PIECE)
    client.leave()


def test_with_envoy_killed_engines_are_free_and_a_new_one_serves(start, world, until):
    gateway, engine = start()
    streams = [Client(gateway).send(request(world.acme_key, model)) for model in STREAMING]
    assert all(stream.reads(b'"a"') for stream in streams)
    began = time.monotonic()
    until(lambda: time.monotonic() > began + UNREAD_SECONDS, "no doubt that Envoy has read the decisions")
    gateway.end(gateway.envoy, signal.SIGKILL)
    until(lambda: len(engine.left_at) == len(streams), "the engine sees it", 2)
    until(lambda: held(gateway) == 0, "nothing is held")
    assert (ended(gateway, "client_left"), ended(gateway, "unknown")) == (2, 1)
    for stream in streams:
        assert not stream.reads_to_the_end().endswith(LAST_PIECE)
        stream.leave()
    engine.goes_on = True
    gateway.start_envoy()
    client = Client(gateway).send(request(world.acme_key, "guarded"))
    assert client.reads_to_the_end().endswith(LAST_PIECE)
    client.leave()
