"""Chats over WebSocket, with a real client through real Envoy: each turn is a request of its own."""

import contextlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from fleet.snapshot import GatewayTenant

PATH = "/v1/chat/ws"
DELTA, LAST, DONE = '{"delta":"é"}', '{"delta":"x"}', "[DONE]"


@pytest.fixture
def open_socket(gateway, world, until):
    """Opens connections that the test's end closes."""
    use(gateway, world.snapshot(gateway.one.address), until)
    opened = contextlib.ExitStack()

    def open_one(key=world.acme_key, **options):
        url = f"{gateway.url.replace('http', 'ws')}{PATH}"
        headers = {"authorization": f"Bearer {key}", **options.pop("headers", {})}
        made = connect(url, additional_headers=headers, proxy=None, close_timeout=2, **options)
        return opened.enter_context(made)

    gateway.one.go_on.set()
    for key, model in {world.acme_key: "acme-chat", world.globex_key: "globex-chat"}.items():
        headers = {"authorization": f"Bearer {key}"}
        chat = {"url": f"{gateway.url}/v1/chat/completions", "content": turn(model), "headers": headers}
        until(lambda chat=chat: httpx2.post(**chat).text == "one", "the first engine serves")
    with opened:
        yield open_one
    gateway.one.go_on.clear()


def use(gateway, snapshot, until):
    """Publish it and wait: what is admitted before it stands counts by the one before."""
    gateway.publish(snapshot)
    until(lambda: gateway.uses(snapshot), "the snapshot in use")


def turn(model="acme-chat", **members):
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "the-secret-prompt"}], **members})


def answer(connection):
    """The messages of one turn, without its end."""
    messages = []
    while (message := connection.recv(timeout=10)) != DONE:
        messages.append(message)
    return messages


def closed(connection):
    with pytest.raises(ConnectionClosed) as error:  # noqa: PT012 what was said before comes first
        while True:
            connection.recv(timeout=10)
    return error.value.rcvd.code


def test_turns_come_one_after_the_other_and_each_is_a_streamed_request(gateway, open_socket):
    connection = open_socket()
    connection.send(turn(max_tokens=5))
    assert answer(connection) == [DELTA, LAST]
    connection.send(turn(stream=True))
    connection.send(turn())
    assert answer(connection) == [DELTA, LAST]
    assert answer(connection) == [DELTA, LAST]
    sent = [json.loads(body) for body in gateway.one.bodies[-3:]]
    assert all(body["stream"] is True for body in sent)
    assert sent[0]["max_tokens"] == 5
    head = gateway.one.heads[-1].lower()
    assert head.startswith("post /v1/chat/completions ")
    assert "authorization" not in head


def test_a_wrong_key_opens_nothing(open_socket, world):
    with pytest.raises(InvalidStatus) as error:
        open_socket("eh-wrong")
    assert error.value.response.status_code == 401
    assert json.loads(error.value.response.body)["error"]["code"] == "invalid_api_key"
    assert open_socket(world.globex_key).close_code is None


def test_a_key_that_is_revoked_ends_idle_connections_and_others_after_their_turn(gateway, open_socket, world, until):
    idle, running = open_socket(), open_socket()
    idle.send(turn())
    answer(idle)
    gateway.one.go_on.clear()
    running.send(turn())
    assert running.recv(timeout=10) == DELTA
    running.send(turn())
    known = world.snapshot(gateway.one.address)
    gateway.publish(known.model_copy(update={"keys": known.keys[1:]}))
    assert closed(idle) == 1008
    gateway.one.go_on.set()
    assert answer(running) == [LAST]
    assert closed(running) == 1008
    assert gateway.metric('enginehouse_gateway_websockets_closed_total{code="1008"}') >= 2


def test_a_turn_with_a_key_that_counts_no_more_is_refused_before_the_connection_is(gateway, open_socket, world, until):
    connection = open_socket()
    known = world.snapshot(gateway.one.address)
    gateway.publish(known.model_copy(update={"keys": known.keys[1:]}))
    with contextlib.suppress(ConnectionClosed):  # as soon as it is seen, whichever comes first
        while True:
            connection.send(turn())
            messages = answer(connection)
            assert messages == [DELTA, LAST] or json.loads(messages[0])["error"]["code"] == "invalid_api_key"
    assert connection.close_code == 1008


def test_errors_are_messages_and_the_connection_stays(open_socket):
    connection = open_socket()
    for message, code in {
        turn(model="unknown"): "model_not_found",
        turn(stream=False): "invalid_value",
        turn(n=-1): "invalid_value",
        "{}": "missing_model",
        "no JSON": "invalid_json",
        '{"model": 1, "model": 2}': "invalid_json",
        "": "invalid_json",
    }.items():
        connection.send(message)
        [error] = map(json.loads, answer(connection))
        assert error["error"]["code"] == code, message
        assert 400 <= error["status"] < 500
    connection.send(turn())
    assert answer(connection) == [DELTA, LAST]


def test_a_turn_over_the_budget_says_when_to_try_again(gateway, open_socket, world, until):
    snapshot = world.snapshot(gateway.one.address)
    limited = GatewayTenant(name="globex", concurrent_requests=1)
    one, two = open_socket(world.globex_key), open_socket(world.globex_key)
    use(gateway, snapshot.model_copy(update={"tenants": (snapshot.tenants[0], limited)}), until)
    gateway.one.go_on.clear()
    one.send(turn("globex-chat"))
    assert one.recv(timeout=10) == DELTA

    def is_refused():
        two.send(turn("globex-chat"))
        message = json.loads(two.recv(timeout=10))
        if "error" not in message:
            two.send('{"type": "cancel"}')
        answer(two)
        return message.get("error", {}).get("code") == "rate_limit_exceeded" and message["status"] == 429

    until(is_refused, "one at a time")
    gateway.one.go_on.set()
    assert answer(one) == [LAST]


def test_cancelling_ends_the_turn_and_the_engine_and_not_the_connection(gateway, open_socket, until):
    gateway.one.go_on.clear()
    aborted = gateway.one.aborted
    connection = open_socket()
    connection.send('{"type": "cancel"}')  # nothing runs
    connection.send(turn())
    assert connection.recv(timeout=10) == DELTA
    connection.send('{"type":"cancel"}')
    [cancelled] = map(json.loads, answer(connection))
    assert cancelled["error"]["code"] == "cancelled"
    until(lambda: gateway.one.aborted == aborted + 1, "the engine sees it", 2)
    gateway.one.go_on.set()
    connection.send(turn())
    assert answer(connection) == [DELTA, LAST]


def test_a_client_that_leaves_ends_the_turn_at_its_engine(gateway, open_socket, until):
    gateway.one.go_on.clear()
    aborted = gateway.one.aborted
    for _ in range(3):
        connection = open_socket()
        connection.send(turn())
        assert connection.recv(timeout=10) == DELTA
        connection.socket.shutdown(socket.SHUT_RDWR)
    until(lambda: gateway.one.aborted == aborted + 3, "the engine sees it", 2)
    until(lambda: gateway.metric("enginehouse_gateway_websockets_open") == 0, "no connection is left")


def test_a_draining_engine_gets_no_new_turn_and_finishes_the_one_that_runs(gateway, open_socket, world, until):
    gateway.one.go_on.clear()
    running, other = open_socket(), open_socket()
    running.send(turn())
    assert running.recv(timeout=10) == DELTA
    gateway.two.go_on.set()
    gateway.publish(world.snapshot(gateway.two.address, draining=(gateway.one.address,)))
    headers = {"authorization": f"Bearer {world.acme_key}"}
    chat = {"url": f"{gateway.url}/v1/chat/completions", "content": turn(), "headers": headers}
    until(lambda: httpx2.post(**chat).text == "two", "the other engine serves")
    served = len(gateway.two.bodies)
    other.send(turn())
    assert answer(other) == [DELTA, LAST]
    gateway.one.go_on.set()
    assert answer(running) == [LAST]
    running.send(turn())
    assert answer(running) == [DELTA, LAST]
    assert len(gateway.two.bodies) == served + 2


def test_an_engine_that_breaks_off_is_an_error_and_the_next_turn_works(gateway, open_socket):
    gateway.one.breaks_off = True
    connection = open_socket()
    connection.send(turn())
    *got, error = answer(connection)
    gateway.one.breaks_off = False
    assert got in ([], [DELTA])
    assert json.loads(error)["error"]["code"] == "engine_lost"
    connection.send(turn())
    assert answer(connection) == [DELTA, LAST]


def test_messages_that_are_too_big_binary_or_too_many_close_the_connection(gateway, open_socket):
    connection = open_socket()
    connection.send(turn(padding="x" * 1024 * 1024))
    assert closed(connection) == 1009
    connection = open_socket()
    connection.send(b"\x00\x01")
    assert closed(connection) == 1003
    gateway.one.go_on.clear()
    connection = open_socket()
    with contextlib.suppress(ConnectionClosed):
        for _ in range(12):
            connection.send(turn())
    assert closed(connection) == 1008


def test_many_idle_connections_leave_nothing(gateway, open_socket, until):
    opened = [open_socket() for _ in range(60)]
    assert gateway.metric("enginehouse_gateway_websockets_open") == 60
    for connection in opened[::2]:
        connection.socket.shutdown(socket.SHUT_RDWR)
    with ThreadPoolExecutor(len(opened)) as closing:  # Envoy takes a second to end each
        list(closing.map(ClientConnection.close, opened[1::2]))
    until(lambda: gateway.metric("enginehouse_gateway_websockets_open") == 0, "no connection is left")


def raw(gateway, *lines, body=b""):
    """What Envoy answers to a request of raw lines, until it closes or says no more."""
    with socket.create_connection(("127.0.0.1", gateway.settings["listen_port"]), timeout=10) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        connection.settimeout(1)
        got = b""
        try:
            while piece := connection.recv(65536):
                got += piece
        except TimeoutError:
            pass
        return got


UPGRADE = ("connection: Upgrade", "upgrade: websocket", "sec-websocket-version: 13", "host: x")
KEY = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="


def test_what_is_no_websocket_is_told_so(gateway, open_socket, world):
    headers = {"authorization": f"Bearer {world.acme_key}"}
    url = f"{gateway.url}{PATH}"
    for method, status in {"GET": 426, "POST": 405, "DELETE": 405}.items():
        told = httpx2.request(method, url, headers=headers)
        assert told.status_code == status
        assert told.headers["content-type"] == "application/json"
        assert told.json()["error"]["code"] in {"websocket_only", "method_not_allowed"}
    assert httpx2.get(url).status_code == 401
    assert httpx2.get(f"{url}/", headers=headers).status_code == 404


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models", "/metrics", "/v1/chat/ws/", "/v1//chat/%77s/x"])
def test_nothing_else_is_upgraded(gateway, open_socket, world, path):
    who = f"authorization: Bearer {world.acme_key}"
    got = raw(gateway, f"GET {path} HTTP/1.1", who, *UPGRADE, KEY)
    assert got.startswith(b"HTTP/1.1 403 "), got
    assert b'"upgrade_refused"' in got


def test_no_request_is_smuggled_behind_an_upgrade_that_fails(gateway, open_socket, world):
    who = f"authorization: Bearer {world.acme_key}"
    smuggled = f"GET /v1/models HTTP/1.1\r\nhost: x\r\n{who}\r\n\r\n".encode()
    wrong = [line.replace("13", "77") for line in UPGRADE]
    got = raw(gateway, f"GET {PATH} HTTP/1.1", who, *wrong, KEY, body=smuggled)
    assert got.startswith(b"HTTP/1.1 4"), got
    assert got.count(b"HTTP/1.1 ") == 1
    assert b"acme-chat" not in got
    engine = len(gateway.one.heads)
    for token in ("h2c", "h2c, websocket", "websocket, h2c", "TLS/1.0"):
        lines = ("connection: Upgrade, HTTP2-Settings", f"upgrade: {token}", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA")
        got = raw(gateway, f"GET {PATH} HTTP/1.1", who, "host: x", *lines, body=b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 4"), (token, got)
        assert b"101 Switching" not in got
    assert len(gateway.one.heads) == engine


def test_own_headers_of_a_client_open_no_way(gateway, open_socket, world):
    mine = {"x-gateway-ticket": "guessed", "x-gateway-destination-endpoint": gateway.two.address}
    connection = open_socket(headers=mine)
    served = len(gateway.two.bodies)
    connection.send(turn())
    assert answer(connection) == [DELTA, LAST]
    assert len(gateway.two.bodies) == served


def test_nothing_that_was_said_is_in_a_log(gateway, open_socket, world):
    connection = open_socket()
    connection.send(turn())
    answer(connection)
    for text in (gateway.gateway_log, json.dumps(gateway.access_log)):
        assert "the-secret-prompt" not in text
        assert world.acme_key not in text
