"""The rules of RFC 9113 one by one: what is answered, what ends a stream, what ends the connection."""

import pytest

from gateway.http2 import frames
from gateway.http2.errors import ErrorCode
from gateway.http2.frames import frame
from gateway.http2.header_blocks import literals, status_line
from gateway.http2.limits import Limits


def opened(server, client, *settings):
    server.receive(client.start(*settings) + client.headers(1))
    server.sent()
    return server.recorder.streams[1]


def codes(server, kind=frames.RST_STREAM):
    return [(f[2], int.from_bytes(f[3][-4:], "big")) for f in server.sent() if f[0] == kind]


def test_the_server_states_its_limits_first_and_answers_settings(server, client):
    first = server.sent()
    assert (first[0][0], first[0][2]) == (frames.SETTINGS, 0)
    assert first[1][0] == frames.WINDOW_UPDATE
    server.receive(client.start())
    assert server.sent() == [(frames.SETTINGS, frames.ACK, 0, b"")]


def test_a_ping_is_answered_with_its_own_bytes(server, client):
    opened(server, client)
    server.receive(frame(frames.PING, 0, 0, b"abcdefgh"), frame(frames.PING, frames.ACK, 0, b"abcdefgh"))
    assert server.sent() == [(frames.PING, frames.ACK, 0, b"abcdefgh")]


CONNECTION_FAULTS = {
    "headers before settings": (lambda c: frames.PREFACE + c.headers(1), "PROTOCOL_ERROR"),
    "an even stream": (lambda c: c.start() + c.headers(2), "PROTOCOL_ERROR"),
    "data on an idle stream": (lambda c: c.start() + c.data(9, b"x"), "PROTOCOL_ERROR"),
    "data on no stream": (lambda c: c.start() + c.data(0, b"x"), "PROTOCOL_ERROR"),
    "a reset of an idle stream": (lambda c: c.start() + frames.rst_stream(9, ErrorCode.CANCEL), "PROTOCOL_ERROR"),
    "a push": (lambda c: c.start() + frame(frames.PUSH_PROMISE, 4, 1, bytes(4)), "PROTOCOL_ERROR"),
    "settings on a stream": (lambda c: c.start() + frame(frames.SETTINGS, 0, 1), "PROTOCOL_ERROR"),
    "settings of 5 bytes": (lambda c: c.start() + frame(frames.SETTINGS, 0, 0, bytes(5)), "FRAME_SIZE_ERROR"),
    "an acknowledgement with settings": (
        lambda c: c.start() + frame(frames.SETTINGS, frames.ACK, 0, bytes(6)),
        "FRAME_SIZE_ERROR",
    ),
    "too large a window": (lambda c: c.start((4, 2**31)), "FLOW_CONTROL_ERROR"),
    "too small a frame": (lambda c: c.start((5, 100)), "PROTOCOL_ERROR"),
    "push neither on nor off": (lambda c: c.start((2, 2)), "PROTOCOL_ERROR"),
    "a ping of 7 bytes": (lambda c: c.start() + frame(frames.PING, 0, 0, bytes(7)), "FRAME_SIZE_ERROR"),
    "a ping on a stream": (lambda c: c.start() + frame(frames.PING, 0, 1, bytes(8)), "PROTOCOL_ERROR"),
    "a goaway of 4 bytes": (lambda c: c.start() + frame(frames.GOAWAY, 0, 0, bytes(4)), "PROTOCOL_ERROR"),
    "a window by nothing": (lambda c: c.start() + frames.window_update(0, 0), "PROTOCOL_ERROR"),
    "a window past the end": (lambda c: c.start() + frames.window_update(0, 2**31 - 1), "FLOW_CONTROL_ERROR"),
    "an update of 3 bytes": (lambda c: c.start() + frame(frames.WINDOW_UPDATE, 0, 0, bytes(3)), "FRAME_SIZE_ERROR"),
    "a priority on no stream": (lambda c: c.start() + frame(frames.PRIORITY, 0, 0, bytes(5)), "PROTOCOL_ERROR"),
    "a lone continuation": (lambda c: c.start() + frame(frames.CONTINUATION, 4, 1), "PROTOCOL_ERROR"),
    "a frame between": (
        lambda c: c.start() + frame(frames.HEADERS, 0, 1, b"\x83") + frame(frames.PING, 0, 0, bytes(8)),
        "PROTOCOL_ERROR",
    ),
    "padding past the frame": (
        lambda c: c.start() + c.headers(1) + frame(frames.DATA, frames.PADDED, 1, b"\x05abc"),
        "PROTOCOL_ERROR",
    ),
    "a table that isn't there": (lambda c: c.start() + frame(frames.HEADERS, 4, 1, b"\xfe"), "COMPRESSION_ERROR"),
    "too large a frame": (lambda c: c.start() + frame(frames.DATA, 0, 1, bytes(65_537)), "FRAME_SIZE_ERROR"),
    "headers on a stream that is over": (
        lambda c: c.start() + c.headers(3) + frames.rst_stream(3, ErrorCode.CANCEL) + c.headers(3),
        "STREAM_CLOSED",
    ),
    "a window that settings make too large": (
        lambda c: c.start() + c.headers(1) + frames.window_update(1, 2**31 - 65_536) + frames.settings([(4, 65_536)]),
        "FLOW_CONTROL_ERROR",
    ),
}


@pytest.mark.parametrize("name", CONNECTION_FAULTS)
def test_a_broken_rule_of_the_connection_ends_it_with_a_goaway(server, client, name):
    stream, code = CONNECTION_FAULTS[name]
    server.receive(stream(client))
    assert server.fault.name == code
    goaway = server.sent()[-1]
    assert (goaway[0], int.from_bytes(goaway[3][4:8], "big")) == (frames.GOAWAY, server.fault)
    assert server.connection.is_over


REGULAR = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/"))
BAD_REQUESTS = {
    "no path": REGULAR[:2],
    "a method twice": (*REGULAR, (b":method", b"GET")),
    "an unknown pseudo field": (*REGULAR, (b":status", b"200")),
    "a pseudo field after a regular one": (REGULAR[0], (b"a", b"b"), *REGULAR[1:]),
    "an upper-case name": (*REGULAR, (b"Name", b"x")),
    "a name with a space": (*REGULAR, (b"a b", b"x")),
    "an empty name": (*REGULAR, (b"", b"x")),
    "a field of the connection": (*REGULAR, (b"transfer-encoding", b"chunked")),
    "te other than trailers": (*REGULAR, (b"te", b"gzip")),
    "a line break": (*REGULAR, (b"a", b"b\r\nc: d")),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_a_malformed_request_is_reset_and_others_go_on(server, client, name):
    block = literals(BAD_REQUESTS[name])
    server.receive(client.start() + frame(frames.HEADERS, 5, 1, block) + client.headers(3))
    assert (1, ErrorCode.PROTOCOL_ERROR) in codes(server)
    assert list(server.recorder.streams) == [3]


STREAM_FAULTS = {
    "data after the end": (lambda c: c.data(1, ends=True) + c.data(1, b"x"), "STREAM_CLOSED"),
    "a second end": (lambda c: c.data(1, ends=True) + c.data(1, ends=True), "STREAM_CLOSED"),
    "headers without the end": (lambda c: c.headers(1, [(b"a", b"b")]), "PROTOCOL_ERROR"),
    "trailers with a pseudo field": (lambda c: c.headers(1, [(b":path", b"b")], ends=True), "PROTOCOL_ERROR"),
    "a window by nothing": (lambda c: frames.window_update(1, 0), "PROTOCOL_ERROR"),
    "a window past the end": (lambda c: frames.window_update(1, 2**31 - 1), "FLOW_CONTROL_ERROR"),
    "a priority of 4 bytes": (lambda c: frame(frames.PRIORITY, 0, 1, bytes(4)), "FRAME_SIZE_ERROR"),
}


@pytest.mark.parametrize("name", STREAM_FAULTS)
def test_a_broken_rule_of_a_stream_ends_that_stream_alone(server, client, name):
    build, code = STREAM_FAULTS[name]
    opened(server, client)
    server.receive(client.headers(3), build(client), client.data(3, b"on"))
    assert codes(server) == [(1, ErrorCode[code])]
    assert server.recorder.of(1)[-1] == ("closed",)
    assert server.recorder.of(3)[-1] == ("data", b"on")
    assert server.fault is None


def test_trailers_and_priorities_and_unknown_frames_are_taken(server, client):
    block = client.encoder.encode(REGULAR)
    with_priority = frame(frames.HEADERS, frames.WITH_PRIORITY | frames.END_HEADERS, 1, bytes(5) + block)
    server.receive(client.start(), with_priority, frame(0xFA, 3, 1, b"?"), frame(frames.PRIORITY, 0, 7, bytes(5)))
    server.receive(client.data(1, b"body", padding=9), client.headers(1, [(b"x", b"y")], ends=True))
    assert server.recorder.of(1)[1:] == [("data", b"body"), ("ended",)]


def test_a_header_block_in_many_frames_is_one(server, client):
    block = client.encoder.encode([*REGULAR, (b"long", b"v" * 40)])
    pieces = [block[at : at + 3] for at in range(0, len(block), 3)]
    out = [frame(frames.HEADERS, frames.END_STREAM, 1, pieces[0])]
    out += [frame(frames.CONTINUATION, 0, 1, piece) for piece in pieces[1:]]
    server.receive(client.start(), *out, frame(frames.CONTINUATION, frames.END_HEADERS, 1))
    assert server.recorder.of(1) == [("opened", (*REGULAR, (b"long", b"v" * 40))), ("ended",)]


def test_data_of_a_stream_that_was_reset_is_dropped_and_its_window_given_back(make_server, client):
    server = make_server(Limits(connection_window_bytes=65_535))
    opened(server, client).reset(ErrorCode.CANCEL)
    server.receive(*(client.data(1, bytes(16_000)) for _ in range(20)))
    assert server.fault is None
    assert [f for f in server.sent() if f[0] == frames.WINDOW_UPDATE and f[2] == 0]


def test_unconsumed_bytes_are_given_back_when_their_stream_ends(make_server, client, recorder):
    server = make_server(Limits(connection_window_bytes=65_535), recorder(consumes=False))
    opened(server, client)
    server.receive(client.data(1, bytes(40_000)), frames.rst_stream(1, ErrorCode.CANCEL))
    assert (0, 40_000) in codes(server, frames.WINDOW_UPDATE)


def test_more_streams_than_allowed_are_refused(make_server, client):
    server = make_server(Limits(max_streams=2))
    server.receive(client.start(), *(client.headers(n) for n in (1, 3, 5)))
    assert codes(server) == [(5, ErrorCode.REFUSED_STREAM)]


def test_trailers_wait_for_the_body_and_the_open_side_is_reset_without_an_error(server, client):
    stream = opened(server, client, (4, 10))
    stream.send_headers(status_line(200))
    stream.send_data(b"0123456789abc")
    stream.send_trailers(literals([(b"grpc-status", b"0")]))
    assert [f[0] for f in server.sent()] == [frames.HEADERS, frames.DATA]
    server.receive(frames.window_update(1, 100))
    last = server.sent()
    assert [f[0] for f in last] == [frames.DATA, frames.HEADERS, frames.RST_STREAM]
    assert (last[0][3], last[2][3]) == (b"abc", bytes(4))
    assert server.recorder.of(1)[-1] == ("closed",)
    assert not server.connection.outlet.streams


def test_a_user_is_told_when_what_was_kept_back_is_sent(server, client):
    stream = opened(server, client, (4, 10))
    stream.send_data(b"0123456789abc")
    assert stream.unsent_bytes == 3
    server.receive(frames.settings([(4, 2)]))  # less than what is out already
    server.receive(frames.window_update(1, 9))
    assert stream.unsent_bytes == 2
    server.receive(frames.settings([(4, 4)]))
    assert stream.unsent_bytes == 0
    assert server.recorder.of(1)[-1] == ("writable",)


def test_streams_share_the_window_of_the_connection_in_turns(server, client):
    first = opened(server, client)
    server.receive(client.headers(3))
    second = server.recorder.streams[3]
    server.connection.outlet.window = 0
    first.send_data(b"a" * 10)
    second.send_data(b"b" * 10)
    first.window = 4
    server.receive(frames.window_update(0, 8))
    assert [f[3] for f in server.sent() if f[0] == frames.DATA] == [b"aaaa", b"bbbb"]


def test_a_peer_that_takes_nothing_costs_its_stream_at_a_limit(make_server, client):
    server = make_server(Limits(max_unsent_bytes=1000))
    stream = opened(server, client, (4, 0))
    stream.send_data(bytes(1000))
    assert not stream.is_closed
    stream.send_data(b"x")
    assert codes(server) == [(1, ErrorCode.ENHANCE_YOUR_CALM)]
    assert stream.unsent_bytes == 0


@pytest.mark.parametrize("piece", [b"", b"x", b"x" * 16_000])
def test_continuation_without_end_ends_the_connection_early(make_server, client, piece):
    server = make_server()
    server.receive(client.start(), frame(frames.HEADERS, 0, 1, b"\x83"))
    sent = 0
    while server.fault is None and sent < 200:
        server.receive(frame(frames.CONTINUATION, 0, 1, piece))
        sent += 1
    assert server.fault is ErrorCode.ENHANCE_YOUR_CALM
    assert sent * len(piece) <= 64_000


def test_a_header_list_that_unpacks_to_too_much_ends_the_connection(server, client):
    server.receive(client.start(), client.headers(1, [*REGULAR, (b"big", b"v" * 4000)]))
    bomb = client.encoder.encode([(b"big", b"v" * 4000)]) * 20
    server.receive(frame(frames.HEADERS, 4, 3, client.encoder.encode(REGULAR) + bomb))
    assert server.fault is ErrorCode.ENHANCE_YOUR_CALM


def test_draining_takes_what_was_under_way_and_then_no_more(server, client):
    opened(server, client)
    server.connection.drain()
    goaway, ping = server.sent()
    assert goaway[0] == frames.GOAWAY
    assert goaway[3][:4] == b"\x7f\xff\xff\xff"
    server.receive(client.headers(3))
    assert 3 in server.recorder.streams
    server.receive(frame(frames.PING, frames.ACK, 0, ping[3]))
    assert server.sent()[-1][3][:4] == (3).to_bytes(4, "big")
    server.receive(client.headers(5))
    assert codes(server) == [(5, ErrorCode.REFUSED_STREAM)]
    assert not server.connection.is_over
    for stream in list(server.recorder.streams.values()):
        stream.send_headers(status_line(200), ends=True)
    assert server.connection.is_over


def test_a_lost_peer_closes_every_stream_once(server, client):
    opened(server, client)
    server.connection.lose()
    server.connection.lose()
    assert server.recorder.of(1)[1:] == [("closed",)]
    server.receive(client.headers(3))
    assert server.sent() == []
