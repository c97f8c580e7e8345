"""gRPC on streams: messages in any pieces, ends of every kind, deadlines, pauses."""

import struct
from contextlib import suppress
from itertools import pairwise

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.http2 import frames
from gateway.http2.grpc_calls import CallRefused, unary
from gateway.http2.grpc_messages import MessageFault, MessageReader, prefixed
from gateway.http2.grpc_server import Dispatcher
from gateway.http2.grpc_status import Status, status_fields, timeout_seconds
from gateway.http2.limits import Limits


class Handler:
    """Sends each message back; one of these words makes it do something else."""

    def __init__(self, call):
        self.call, self.events = call, []

    def message(self, data):
        self.events.append(data)
        if data == b"raise":
            raise ValueError("the-secret-prompt")
        if data == b"refuse":
            raise CallRefused(Status.NOT_FOUND, "no: é%")
        if data == b"pause":
            self.call.pause()
            return
        self.call.send(data)

    def half_closed(self):
        self.events.append("half closed")
        self.call.finish()

    def writable(self):
        self.events.append("writable")

    def closed(self):
        self.events.append("closed")


class Grpc:
    """A connection with one method of each kind, and timers that a test fires."""

    def __init__(self, make_server, recorder, client):
        self.handlers, self.failures, self.timers, self.client = [], [], [], client
        methods = {"/test.Echo/Both": self.make, "/test.Echo/One": unary(bytes.upper)}
        dispatcher = Dispatcher(methods, Limits(max_message_bytes=1000), self.failed, self.later)
        made = recorder()
        made.open = dispatcher.open
        self.server = make_server(Limits(), made)
        self.server.receive(client.start())
        self.server.sent()
        self.decoder = hpack.Decoder()

    def make(self, call):
        self.handlers.append(Handler(call))
        return self.handlers[-1]

    def failed(self):
        self.failures.append(1)

    def later(self, seconds, act):
        self.timers.append(Timer(seconds, act))
        return self.timers[-1]

    def answer(self, *sent):
        """(messages, fields) that come back."""
        self.server.receive(*sent)
        body, fields = b"", {}
        for kind, _, _, payload in self.server.sent():
            if kind == frames.DATA:
                body += payload
            elif kind == frames.HEADERS:
                fields |= dict(self.decoder.decode(payload))
        return MessageReader(10_000).feed(body), fields


class Timer:
    def __init__(self, seconds, act):
        self.seconds, self.act, self.is_cancelled = seconds, act, False

    def cancel(self):
        self.is_cancelled = True


@pytest.fixture
def grpc(make_server, recorder, client):
    return Grpc(make_server, recorder, client)


@given(messages=st.lists(st.binary(max_size=50), max_size=8), cuts=st.sets(st.integers(0, 450), max_size=20))
def test_any_split_gives_the_same_messages(messages, cuts):
    stream = b"".join(map(prefixed, messages))
    at = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    reader = MessageReader(50)
    found = [m for a, b in pairwise(at) for m in reader.feed(stream[a:b])]
    assert found == messages
    assert not reader.is_within


@given(noise=st.lists(st.binary(max_size=30), max_size=6))
def test_bytes_that_are_no_messages_give_a_fault_and_nothing_else(noise):
    reader = MessageReader(100)
    with suppress(MessageFault):
        for piece in noise:
            reader.feed(piece)


def test_a_stream_of_messages_goes_both_ways(grpc, client):
    messages, fields = grpc.answer(client.headers(1), client.message(1, b"a"), client.message(1, b"b" * 900))
    assert messages == [b"a", b"b" * 900]
    assert fields == {":status": "200", "content-type": "application/grpc"}
    assert grpc.answer(client.data(1, ends=True)) == ([], {"grpc-status": "0"})
    assert grpc.handlers[0].events[-2:] == ["half closed", "closed"]


def test_a_unary_method_answers_when_the_call_is_half_closed(grpc, client, call_fields):
    one = [*call_fields[:2], (b":path", b"/test.Echo/One"), *call_fields[3:]]
    assert grpc.answer(client.headers(1, one), client.message(1, b"abc")) == ([], {})
    messages, fields = grpc.answer(client.data(1, ends=True))
    assert (messages, fields["grpc-status"]) == ([b"ABC"], "0")
    assert grpc.answer(client.headers(3, one), client.data(3, ends=True))[1]["grpc-status"] == "13"
    twice = client.message(5, b"a") + client.message(5, b"b")
    assert grpc.answer(client.headers(5, one), twice)[1]["grpc-status"] == "13"


def test_a_handler_that_raises_ends_its_call_without_telling_why(grpc, client):
    _, fields = grpc.answer(client.headers(1), client.message(1, b"raise"))
    assert fields["grpc-status"] == "13"
    assert "secret" not in fields["grpc-message"]
    assert grpc.failures == [1]
    assert grpc.handlers[0].events == [b"raise", "closed"]
    _, fields = grpc.answer(client.headers(3), client.message(3, b"refuse"))
    assert (fields["grpc-status"], fields["grpc-message"]) == ("5", "no: %C3%A9%25")


@pytest.mark.parametrize(
    ("data", "status"),
    [(b"\1\0\0\0\1a", 12), (struct.pack(">BI", 0, 1001), 8)],
    ids=["compressed", "too long"],
)
def test_a_message_that_is_not_taken_ends_the_call(grpc, client, data, status):
    _, fields = grpc.answer(client.headers(1), client.data(1, data))
    assert fields["grpc-status"] == str(status)


def test_a_call_that_ends_within_a_message_is_an_error(grpc, client):
    _, fields = grpc.answer(client.headers(1), client.data(1, b"\0\0\0\0\5ab", ends=True))
    assert fields["grpc-status"] == "13"


def test_a_reset_closes_the_handler_once(grpc, client):
    grpc.answer(client.headers(1), client.message(1, b"a"), frames.rst_stream(1, 8))
    assert grpc.handlers[0].events == [b"a", "closed"]
    grpc.handlers[0].call.send(b"late")
    grpc.handlers[0].call.finish()
    grpc.handlers[0].call.resume()
    assert grpc.answer() == ([], {})


def test_a_paused_call_gets_no_message_and_the_peer_no_window(grpc, client):
    messages, _ = grpc.answer(client.headers(1), client.message(1, b"pause") + client.message(1, b"next"))
    handler = grpc.handlers[0]
    assert (messages, handler.events) == ([], [b"pause"])
    grpc.server.receive(*(client.message(1, bytes(900)) for _ in range(50)))
    assert not any(f[0] == frames.WINDOW_UPDATE for f in grpc.server.sent())
    grpc.server.receive(client.data(1, ends=True))
    assert handler.events == [b"pause"]
    handler.call.resume()
    assert handler.events[1:] == [b"next", *[bytes(900)] * 50, "half closed", "closed"]


def test_a_blocked_call_is_told_when_it_may_go_on(grpc, client):
    grpc.answer(frames.settings([(4, 10)]), client.headers(1), client.message(1, b"x" * 50))
    assert grpc.handlers[0].call.is_blocked
    grpc.server.receive(frames.window_update(1, 1000))
    assert not grpc.handlers[0].call.is_blocked
    assert grpc.handlers[0].events[-1] == "writable"


def test_a_deadline_ends_the_call_and_an_end_cancels_the_deadline(grpc, client, call_fields):
    fields = [*call_fields, (b"grpc-timeout", b"250m")]
    grpc.answer(client.headers(1, fields))
    assert grpc.timers[0].seconds == 0.25
    grpc.timers[0].act()
    assert grpc.answer()[1]["grpc-status"] == "4"
    grpc.answer(client.headers(3, fields), client.data(3, ends=True))
    assert grpc.timers[1].is_cancelled
    _, answer = grpc.answer(client.headers(5, [*call_fields, (b"grpc-timeout", b"soon")]))
    assert answer["grpc-status"] == "3"


def test_a_deadline_with_a_peer_that_takes_nothing_resets(grpc, client, call_fields):
    grpc.answer(frames.settings([(4, 0)]), client.headers(1, [*call_fields, (b"grpc-timeout", b"1S")]))
    grpc.server.receive(client.message(1, b"x"))
    grpc.server.sent()
    grpc.timers[0].act()
    assert grpc.server.sent()[-1][0] == frames.RST_STREAM


def test_what_is_no_call_of_ours_is_refused(grpc, client, call_fields):
    other = [*call_fields[:2], (b":path", b"/test.Echo/Other"), *call_fields[3:]]
    assert grpc.answer(client.headers(1, other), client.message(1, b"x"))[1]["grpc-status"] == "12"
    get = [(b":method", b"GET"), *call_fields[1:]]
    assert grpc.answer(client.headers(3, get, ends=True))[1] == {":status": "415"}
    plain = [*call_fields[:4], (b"content-type", b"text/plain")]
    assert grpc.answer(client.headers(5, plain))[1] == {":status": "415"}


@given(number=st.integers(0, 99_999_999), unit=st.sampled_from("HMSmun"))
def test_timeouts_are_read(number, unit):
    seconds = {"H": 3600, "M": 60, "S": 1, "m": 1e-3, "u": 1e-6, "n": 1e-9}[unit]
    assert timeout_seconds(f"{number}{unit}".encode()) == pytest.approx(number * seconds)


@pytest.mark.parametrize("text", [b"", b"S", b"1", b"1s", b"-1S", b"123456789S", "²S".encode()])
def test_other_timeouts_are_not(text):
    assert timeout_seconds(text) is None


@given(message=st.text(max_size=60))
def test_a_status_message_is_plain_ascii_on_one_line(message):
    fields = dict(hpack.Decoder().decode(status_fields(Status.ABORTED, message), raw=True))
    assert all(0x20 <= byte < 0x7F for byte in fields.get(b"grpc-message", b""))
