"""Engines' own WebSockets through real Envoy: a session stays with its engine, and each answer is held and charged."""

import contextlib
import json
import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.server import serve

from fleet.snapshot import GatewayRoute, GatewayTenant

CREATE = {"type": "response.create"}
USAGE = {"input_tokens": 700, "output_tokens": 50, "total_tokens": 750, "input_token_details": {"cached_tokens": 100}}


class RealtimeEngine:
    """Says what a realtime engine says; an answer goes on when the test lets it."""

    def __init__(self):
        self.go_on = threading.Event()
        self.go_on.set()
        self.said, self.paths, self.heads, self.open, self.left = [], [], [], [], 0
        self.server = serve(self.talk, "127.0.0.1", 0, compression=None)
        self.address = f"127.0.0.1:{self.server.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def talk(self, connection):
        self.paths.append(connection.request.path)
        self.heads.append(dict(connection.request.headers.raw_items()))
        self.open.append(connection)
        with contextlib.suppress(ConnectionClosed):
            connection.send(json.dumps({"type": "session.created"}))
            for text in connection:
                message = json.loads(text)
                self.said.append(message)
                if message["type"] in ("response.create", "input_audio_buffer.commit"):
                    self.answer(connection)
        self.left += 1

    def answer(self, connection):
        connection.send(json.dumps({"type": "response.created", "response": {"id": "r1"}}))
        connection.send(json.dumps({"type": "response.output_text.delta", "delta": "é"}))
        self.go_on.wait(10)
        connection.send(json.dumps({"type": "response.done", "response": {"id": "r1", "usage": USAGE}}))

    def stop(self):
        self.go_on.set()
        for connection in self.open:
            connection.close()
        self.server.shutdown()
        self.thread.join()


@pytest.fixture
def engine():
    made = RealtimeEngine()
    yield made
    made.stop()


@pytest.fixture
def snapshot(gateway, world, engine, until):
    """Publishes a route to the engine's own WebSocket, and waits until it stands."""

    def publish(tenant=None, is_draining=False, keys=None, **members):
        arm = world.arm(engine.address)
        if is_draining:
            endpoints = tuple(one.model_copy(update={"is_draining": True}) for one in arm.endpoints)
            arm = arm.model_copy(update={"endpoints": endpoints})
        made = world.snapshot(gateway.one.address)
        stated = {"realtime": True, **members}
        route = GatewayRoute(model="voice", tenants=("acme",), arms=(arm,), aliases=("speech",), **stated)
        tenants = (GatewayTenant(name="acme", **(tenant or {})), *made.tenants[1:])
        changes = {"routes": (*made.routes, route), "tenants": tenants, "keys": made.keys if keys is None else keys}
        wanted = made.model_copy(update=changes)
        gateway.publish(wanted)
        until(lambda: gateway.uses(wanted), "the snapshot in use")

    return publish


@pytest.fixture
def open_session(gateway, world, until):
    with contextlib.ExitStack() as opened:

        def open_one(model="voice", key=world.acme_key):
            url = f"{gateway.url.replace('http', 'ws')}/v1/realtime?model={model}"
            headers = {"authorization": f"Bearer {key}"}
            made = connect(url, additional_headers=headers, proxy=None, compression=None, close_timeout=2)
            return opened.enter_context(made)

        def opens(made, **options):
            with contextlib.suppress(InvalidStatus):
                made.append(open_one(**options))
                return heard(made[-1]) == {"type": "session.created"}

        def when_it_can_be(**options):
            """A session of before may still be counted."""
            made = []
            until(lambda: opens(made, **options), "a session")
            return made[-1]

        open_one.when_it_can_be = when_it_can_be
        yield open_one


def heard(connection):
    return json.loads(connection.recv(timeout=10))


def say(connection, message):
    connection.send(json.dumps(message))


def answer(connection):
    kinds = []
    while not kinds or kinds[-1] not in {"response.done", "error"}:
        kinds.append(heard(connection)["type"])
    return kinds


def closed(connection):
    with pytest.raises(ConnectionClosed) as error:  # noqa: PT012 what was said before comes first
        while True:
            connection.recv(timeout=10)
    return error.value.rcvd.code


WHOLE = ["response.created", "response.output_text.delta", "response.done"]


def test_a_session_is_passed_on_and_each_answer_is_charged(gateway, engine, snapshot, open_session, until):
    snapshot({"tokens_per_minute": 100_000})
    gateway.control_plane.usage.clear()
    session = open_session.when_it_can_be()
    say(session, {"type": "session.update", "session": {"max_output_tokens": 90}})
    for _ in range(2):
        say(session, CREATE)
        assert answer(session) == WHOLE
    session.close()
    until(lambda: engine.left, "the engine sees the end")
    assert engine.paths == ["/v1/realtime?model=voice"]
    assert not {name.lower() for name in engine.heads[0]} & {"authorization", "x-gateway-ticket", "cookie"}
    assert [message["type"] for message in engine.said] == ["session.update", *2 * ["response.create"]]

    def records():
        return [r for r in gateway.control_plane.usage if r["model"] == "voice" and r["output_tokens"]]

    until(lambda: len(records()) == 2, "a record for each answer", 20)
    assert {(r["input_tokens"], r["cached_tokens"], r["output_tokens"], r["basis"]) for r in records()} == {
        (700, 100, 50, "usage")
    }


def test_an_answer_over_the_budget_does_not_reach_the_engine(engine, snapshot, open_session):
    snapshot({"tokens_per_minute": 3_000})
    session = open_session.when_it_can_be()
    say(session, {"type": "response.create", "response": {"max_output_tokens": 2_000}, "event_id": "mine"})
    assert answer(session) == WHOLE  # 750 were used, so that 2,250 are left
    say(session, {"type": "response.create", "response": {"max_output_tokens": 2_600}, "event_id": "again"})
    refused = heard(session)
    assert refused["type"] == "error"
    assert (refused["error"]["code"], refused["error"]["event_id"]) == ("rate_limit_exceeded", "again")
    assert len(engine.said) == 1
    say(session, {"type": "response.create", "response": {"max_output_tokens": 10}})
    assert answer(session) == WHOLE


def test_an_engine_that_answers_by_itself_is_held_for_and_stopped(engine, snapshot, open_session, until):
    snapshot({"tokens_per_minute": 1_000, "default_output_tokens": 900})
    session = open_session.when_it_can_be()
    say(session, {"type": "input_audio_buffer.commit"})
    assert answer(session) == WHOLE
    say(session, {"type": "input_audio_buffer.commit"})
    assert heard(session)["error"]["code"] == "rate_limit_exceeded"
    assert closed(session) == 1008
    until(lambda: engine.left, "the engine sees it")


def test_a_session_counts_as_one_request_at_once_until_it_ends(engine, snapshot, open_session, world, until):
    snapshot({"concurrent_requests": 1})
    session = open_session.when_it_can_be()

    def is_refused():
        try:
            open_session()
        except InvalidStatus as error:
            return error.response.status_code == 429
        return False

    until(is_refused, "one at a time")
    say(session, CREATE)
    assert answer(session) == WHOLE
    session.close()
    open_session.when_it_can_be()


def test_a_draining_engine_gets_no_new_session_finishes_its_answer_and_closes(gateway, engine, snapshot, open_session):
    snapshot()
    idle, running = open_session.when_it_can_be(), open_session.when_it_can_be()
    engine.go_on.clear()
    say(running, CREATE)
    assert [heard(running)["type"] for _ in range(2)] == WHOLE[:2]
    snapshot(is_draining=True)
    assert closed(idle) == 1012
    with pytest.raises(InvalidStatus) as error:
        open_session()
    assert error.value.response.status_code == 503
    engine.go_on.set()
    assert heard(running)["type"] == "response.done"
    assert closed(running) == 1012


def test_an_engine_that_breaks_off_is_an_error_and_a_close(engine, snapshot, open_session):
    snapshot()
    session = open_session.when_it_can_be()
    engine.go_on.clear()
    say(session, CREATE)
    assert [heard(session)["type"] for _ in range(2)] == WHOLE[:2]
    engine.open[-1].socket.close()
    engine.go_on.set()
    assert heard(session)["error"]["code"] == "engine_lost"
    assert closed(session) == 1011


def test_a_client_that_leaves_ends_the_session_at_its_engine(gateway, engine, snapshot, open_session, until):
    snapshot({"concurrent_requests": 1})
    session = open_session.when_it_can_be()
    session.socket.shutdown(2)
    until(lambda: engine.left == 1, "the engine sees it", 3)
    open_session.when_it_can_be()


@pytest.mark.parametrize("loss", ["the key", "the model"])
def test_a_key_that_is_taken_back_ends_its_session_at_once_and_what_came_is_charged(
    gateway, engine, snapshot, open_session, until, world, loss
):
    snapshot({"tokens_per_minute": 100_000})
    idle, running = open_session.when_it_can_be(), open_session.when_it_can_be()
    gateway.control_plane.usage.clear()
    engine.go_on.clear()
    say(running, {"type": "response.create", "response": {"max_output_tokens": 90}})
    assert [heard(running)["type"] for _ in range(2)] == WHOLE[:2]
    taken = time.monotonic()
    if loss == "the key":
        snapshot(keys=world.snapshot().keys[1:])
    else:
        snapshot(realtime=False)
    assert closed(running) == closed(idle) == 1008
    assert time.monotonic() - taken < 3
    engine.go_on.set()
    until(lambda: engine.left == 2, "the engine sees the end")

    def records():
        return [r for r in gateway.control_plane.usage if r["model"] == "voice" and r["output_tokens"]]

    until(lambda: records(), "what came of the answer", 20)
    assert {(r["output_tokens"], r["basis"], r["end"]) for r in records()} == {(1, "counted", "revoked")}


def test_messages_that_can_be_read_in_two_ways_are_not_passed_on_and_binary_ones_end_it(engine, snapshot, open_session):
    snapshot()
    session = open_session.when_it_can_be()
    for text in ('{"type": "response.create", "type": "x"}', "no JSON", "[]"):
        session.send(text)
        assert heard(session)["error"]["code"] == "invalid_json"
    assert engine.said == []
    session.send(b"binary")
    assert closed(session) == 1003


@pytest.mark.parametrize(
    "members",
    [
        {"realtime": False},
        {"output_filter": "pii"},
        {"salts_cache": True},
        {"closed_paths": ({"path": "multimodal", "reference": "R1"},)},
    ],
)
def test_a_route_that_does_not_ask_or_asks_for_more_opens_none(gateway, snapshot, open_session, until, members):
    snapshot(**members)

    def refusal():
        try:
            open_session()
        except InvalidStatus as error:
            return json.loads(error.response.body)["error"]["code"]

    until(lambda: refusal() == "operation_not_served", "the refusal")


def test_models_that_are_not_ones_own_are_not_opened(engine, snapshot, open_session, world):
    snapshot()
    open_session.when_it_can_be(model="speech")
    assert engine.paths[-1] == "/v1/realtime?model=voice"
    for model, key in (
        ("voice", world.globex_key),
        ("none", world.acme_key),
        ("", world.acme_key),
        ("voice&model=x", world.acme_key),
    ):
        with pytest.raises(InvalidStatus) as error:
            open_session(model, key)
        assert error.value.response.status_code in {400, 404}
    with pytest.raises(InvalidStatus) as error:
        open_session(key="wrong")
    assert error.value.response.status_code == 401
