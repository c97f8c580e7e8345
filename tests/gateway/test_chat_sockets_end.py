"""How chats over WebSocket end by themselves: idle, old, too many, and when the gateway stops."""

import contextlib
import json
import threading
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.gateway.conftest import WholeGateway

TURN = json.dumps({"model": "acme-chat", "messages": [{"role": "user", "content": "hi"}]})
DELTA, LAST, DONE = '{"delta":"é"}', '{"delta":"x"}', "[DONE]"


@pytest.fixture
def start(gateway_maker, world, until):
    """Starts a gateway with some limits; gives it and what opens connections."""
    with contextlib.ExitStack() as opened:

        def start_one(drain_seconds=10, **limits):
            gateway = gateway_maker()
            gateway.settings |= {"websockets": limits, "drain_seconds": drain_seconds}
            gateway.start_decision()
            gateway.start_envoy()
            url = f"{gateway.url.replace('http', 'ws')}/v1/chat/ws"
            headers = {"authorization": f"Bearer {world.acme_key}"}
            return gateway, lambda: opened.enter_context(connect(url, additional_headers=headers, proxy=None))

        yield start_one


def closed(connection):
    with pytest.raises(ConnectionClosed) as error:
        connection.recv(timeout=10)
    return error.value.rcvd.code


def test_an_idle_connection_ends_and_one_that_is_too_much_does_not_open(start):
    gateway, open_socket = start(idle_seconds=1.5, max_per_tenant=2)
    first, second = open_socket(), open_socket()
    with pytest.raises(InvalidStatus) as error:
        open_socket()
    assert error.value.response.status_code == 429
    assert json.loads(error.value.response.body)["error"]["code"] == "rate_limit_exceeded"
    assert closed(first) == 1000
    assert closed(second) == 1000
    open_socket()
    assert gateway.metric('enginehouse_gateway_websockets_closed_total{code="1000"}') == 2


def test_an_old_connection_ends_after_the_turn_that_runs(start):
    gateway, open_socket = start(life_seconds=1.5, ping_seconds=0.2)
    connection, idle = open_socket(), open_socket()
    connection.send(TURN)
    assert connection.recv(timeout=10) == DELTA
    assert closed(idle) == 1012
    gateway.one.go_on.set()
    assert [connection.recv(timeout=10) for _ in range(2)] == [LAST, DONE]
    assert closed(connection) == 1012


def test_a_gateway_that_stops_lets_the_running_turn_end_and_closes_with_service_restart(start, until):
    gateway, open_socket = start()
    running, idle = open_socket(), open_socket()
    running.send(TURN)
    assert running.recv(timeout=10) == DELTA
    running.send(TURN)
    stopping = threading.Thread(target=gateway.end, args=(gateway.decision,))
    stopping.start()
    assert closed(idle) == 1012
    gateway.one.go_on.set()
    assert [running.recv(timeout=10) for _ in range(2)] == [LAST, DONE]
    assert closed(running) == 1012
    stopping.join(10)
    assert gateway.decision.poll() == 0


def test_a_turn_that_does_not_end_is_cut_when_the_gateway_has_to_stop(start):
    gateway, open_socket = start(drain_seconds=0.5)
    running = open_socket()
    running.send(TURN)
    assert running.recv(timeout=10) == DELTA
    assert gateway.end(gateway.decision) == 0
    with pytest.raises(ConnectionClosed):  # noqa: PT012 what was said before comes first
        while True:
            running.recv(timeout=10)
    assert gateway.one.finished == 0


def test_a_killed_gateway_ends_its_connections_and_a_new_one_takes_them(start, until):
    gateway, open_socket = start()
    connection = open_socket()
    gateway.end(gateway.decision, 9)
    with pytest.raises(ConnectionClosed):
        connection.recv(timeout=10)
    Path(gateway.settings["ready_file"]).unlink()
    gateway.start_decision()
    gateway.one.go_on.set()
    until(lambda: httpx2.get(f"{gateway.url}/v1/models").status_code == 401, "decisions")
    connection = open_socket()
    connection.send(TURN)
    assert [connection.recv(timeout=10) for _ in range(3)] == [DELTA, LAST, DONE]


def test_limits_of_requests_and_silent_connections_do_not_end_a_websocket(start, monkeypatch):
    write = WholeGateway.start_envoy

    def impatient(gateway):
        file = Path(gateway.ready["envoy_config"])
        known = json.loads(file.read_text())
        manager = known["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        manager |= {"request_timeout": "0.5s", "request_headers_timeout": "0.5s"}
        manager["common_http_protocol_options"]["idle_timeout"] = "0.5s"
        file.write_text(json.dumps(known))
        write(gateway)

    monkeypatch.setattr(WholeGateway, "start_envoy", impatient)
    gateway, open_socket = start()
    gateway.one.go_on.set()
    connection = open_socket()
    with pytest.raises(TimeoutError):
        connection.recv(timeout=2)
    connection.send(TURN)
    assert [connection.recv(timeout=10) for _ in range(3)] == [DELTA, LAST, DONE]
