"""How often a peer may do what costs it nothing, and that calls may end as calls do at any rate."""

import pytest

from gateway.http2 import frames
from gateway.http2.errors import ErrorCode
from gateway.http2.frames import frame
from gateway.http2.header_blocks import literals, status_line
from gateway.http2.limits import Limits

FEW = Limits(resets=50, resets_per_second=1, control_frames=50, control_frames_per_second=1)


FLOODS = {
    "rapid resets": lambda c, n: c.headers(2 * n + 1) + frames.rst_stream(2 * n + 1, ErrorCode.CANCEL),
    "streams that must be reset": lambda c, n: c.headers(2 * n + 1) + frames.window_update(2 * n + 1, 0),
    "pings": lambda c, n: frame(frames.PING, 0, 0, bytes(8)),
    "settings": lambda c, n: frames.settings([]),
    "priorities": lambda c, n: frame(frames.PRIORITY, 0, 3, bytes(5)),
    "empty data": lambda c, n: (c.headers(1) if n == 0 else b"") + c.data(1),
    "unknown frames": lambda c, n: frame(0x20, 0, 0, b"x"),
    "late data": lambda c, n: c.headers(1) + frames.rst_stream(1, ErrorCode.CANCEL) if n == 0 else c.data(1, b"x"),
    "resets of what is over": lambda c, n: (c.headers(1) if n == 0 else b"") + frames.rst_stream(1, ErrorCode.CANCEL),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_the_connection_and_a_slow_trickle_does_not(make_server, make_client, name):
    client, server = make_client(), make_server(FEW)
    server.receive(client.start())
    for number in range(200):
        server.now += 1.0
        server.receive(FLOODS[name](client, number))
    assert server.fault is None
    client, server = make_client(), make_server(FEW)
    server.receive(client.start(), *(FLOODS[name](client, number) for number in range(200)))
    assert server.fault is ErrorCode.ENHANCE_YOUR_CALM


def _answer_then_reset(server, client, stream_id):
    server.receive(client.headers(stream_id) + client.message(stream_id, b"ask"))
    server.recorder.streams[stream_id].send_headers(status_line(200))
    server.recorder.streams[stream_id].send_data(b"answer")
    server.receive(frames.rst_stream(stream_id, ErrorCode.CANCEL))


def _answer_whole(server, client, stream_id):
    server.receive(client.headers(stream_id) + client.message(stream_id, b"ask") + client.data(stream_id, ends=True))
    server.recorder.streams[stream_id].send_headers(status_line(200), ends=True)


def _answer_before_the_end(server, client, stream_id):
    """As proxies do that have sent on and that need no more, while the end of the call comes to them."""
    server.receive(client.headers(stream_id))
    server.recorder.streams[stream_id].send_headers(status_line(200))
    server.recorder.streams[stream_id].send_trailers(literals([(b"grpc-status", b"0")]))
    server.receive(client.data(stream_id, ends=True) + frames.rst_stream(stream_id, ErrorCode.CANCEL))


def _refuse_with_a_body_under_way(server, client, stream_id):
    server.receive(client.headers(stream_id))
    server.recorder.streams[stream_id].send_headers(status_line(413), ends=True)
    server.receive(*(client.data(stream_id, b"x" * 16_000) for _ in range(16)))
    server.receive(client.data(stream_id, ends=True) + frames.rst_stream(stream_id, ErrorCode.CANCEL))


@pytest.mark.parametrize(
    "end", [_answer_then_reset, _answer_whole, _answer_before_the_end, _refuse_with_a_body_under_way]
)
def test_calls_end_at_any_rate(make_server, client, end):
    server = make_server(FEW)
    server.receive(client.start())
    for number in range(1000):
        end(server, client, 2 * number + 1)
    assert server.fault is None
    assert not server.connection.outlet.streams


def test_what_calls_earn_does_not_pile_up(make_server, client):
    server = make_server(FEW)
    server.receive(client.start())
    for number in range(1000):
        _answer_whole(server, client, 2 * number + 1)
    server.receive(*(frame(frames.PING, 0, 0, bytes(8)) for _ in range(FEW.control_frames + 1)))
    assert server.fault is ErrorCode.ENHANCE_YOUR_CALM
