"""Laws of the connection: pieces don't matter, nothing raises, windows hold."""

import hpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.http2 import frames
from gateway.http2.header_blocks import HeaderUnpacker, literals, status_line
from gateway.http2.limits import Limits

RELAXED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

ANY_FRAME = st.builds(
    frames.frame, st.integers(0, 12), st.integers(0, 255), st.sampled_from([0, 1, 2, 3, 5, 7]), st.binary(max_size=40)
)


def session(client, bodies):
    """A client with a stream for each list of pieces, in turns."""
    out = [client.start((4, 70_000), (5, 20_000))]
    for number, pieces in enumerate(bodies):
        stream_id = 2 * number + 1
        out.append(client.headers(stream_id))
        for piece in pieces:
            out.append(client.data(stream_id, piece, padding=len(piece) if len(piece) % 2 else None))
            out.append(frames.frame(frames.PING, 0, 0, b"12345678"))
        out.append(client.data(stream_id, ends=True))
    return b"".join(out)


@given(bodies=st.lists(st.lists(st.binary(max_size=60), max_size=4), max_size=4), data=st.data())
@RELAXED
def test_any_split_of_the_stream_gives_the_same_events_and_answers(make_client, make_server, bodies, data):
    stream = session(make_client(), bodies)
    whole = make_server().receive(stream)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=30)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    cut = make_server().receive(*pieces)
    assert cut.fault is whole.fault is None
    assert cut.recorder.events == whole.recorder.events
    assert cut.connection.outlet.take() == whole.connection.outlet.take()


def test_one_byte_at_a_time_gives_the_same_events(client, make_client, make_server):
    stream = session(client, [[b"a" * 50, b""], [b"bc"]])
    one = make_server().receive(*(stream[at : at + 1] for at in range(len(stream))))
    assert one.recorder.events == make_server().receive(stream).recorder.events
    assert [event[0] for event in one.recorder.of(1)] == ["opened", "data", "ended"]


@given(noise=st.lists(ANY_FRAME, max_size=12), tail=st.binary(max_size=30))
@RELAXED
def test_no_frame_raises_and_a_fault_is_told_once(make_client, make_server, noise, tail):
    client = make_client()
    server = make_server().receive(client.start() + client.headers(1) + client.message(1, b"x"))
    server.receive(b"".join(noise) + tail, b"more after it")
    assert server.connection.is_over == (server.fault is not None)
    last = [frame for frame in server.sent() if frame[0] == frames.GOAWAY]
    assert len(last) == (server.fault is not None)
    if server.fault is not None:
        assert not server.connection.outlet.streams
        assert [event for event in server.recorder.of(1) if event == ("closed",)] == [("closed",)]


@given(noise=st.binary(max_size=200))
@RELAXED
def test_no_bytes_raise(make_server, noise):
    make_server().receive(noise)
    make_server().receive(frames.PREFACE + noise)


@given(block=st.binary(max_size=120))
@RELAXED
def test_no_header_block_raises(make_client, make_server, block):
    head = frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, block)
    make_server().receive(make_client().start() + head)


@given(
    sends=st.lists(st.binary(min_size=1, max_size=400), max_size=12),
    grants=st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(1, 300)), max_size=40),
)
@RELAXED
def test_no_more_is_sent_than_the_peer_takes_and_all_of_it_in_order(make_client, make_server, sends, grants):
    client = make_client()
    server = make_server().receive(client.start((4, 100)) + client.headers(1))
    stream = server.recorder.streams[1]
    stream.window = 100
    server.connection.outlet.window = 150
    allowed = {0: 150, 1: 100}
    stream.send_headers(status_line(200))
    sent = b""
    steps = [("send", data) for data in sends] + [("grant", grant) for grant in grants]
    steps = [step for pair in zip(steps[::2], steps[1::2], strict=False) for step in pair]
    put = b""
    for kind, what in steps:
        if kind == "send":
            stream.send_data(what)
            put += what
        else:
            allowed[what[0]] += what[1]
            server.receive(frames.window_update(*what))
        sent += b"".join(frame[3] for frame in server.sent() if frame[0] == frames.DATA)
        assert len(sent) <= min(allowed.values())
        assert len(sent) == min(len(put), *allowed.values())
    assert put.startswith(sent)


@given(pieces=st.lists(st.integers(0, 90), max_size=40))
@RELAXED
def test_what_is_not_consumed_stays_within_the_window(make_client, make_server, recorder, pieces):
    limits = Limits(stream_window_bytes=500, connection_window_bytes=65_535)
    client, server = make_client(), make_server(limits, recorder(consumes=False))
    server.receive(client.start() + client.headers(1), *(client.data(1, bytes(size)) for size in pieces))
    assert not any(frame[0] == frames.WINDOW_UPDATE for frame in server.sent())
    resets = any(event == ("closed",) for event in server.recorder.of(1))
    assert resets == (sum(pieces) > 500)


@given(count=st.integers(0, 2**40))
def test_lengths_of_literals_are_read_back(count):
    value = b"v" * (count % 20_000)
    block = status_line(200 + count % 300) + literals([(b"name", value), (b"empty", b"")])
    read = hpack.Decoder(max_header_list_size=100_000).decode(block, raw=True)
    assert [tuple(field) for field in read] == [
        (b":status", b"%d" % (200 + count % 300)),
        (b"name", value),
        (b"empty", b""),
    ]


@given(lists=st.lists(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4), max_size=12))
def test_known_blocks_mean_what_the_table_says(lists):
    encoder, plain, knowing = hpack.Encoder(), hpack.Decoder(), HeaderUnpacker(10_000)
    for names in lists:
        block = encoder.encode([(name, "v") for name in names])
        expected = tuple((bytes(n), bytes(v)) for n, v in plain.decode(block, raw=True))
        assert knowing.unpack(block).headers == expected


@pytest.mark.parametrize("size", [1, 8, 23])
def test_a_connection_that_is_no_http2_is_refused_at_its_first_wrong_byte(make_server, size):
    assert make_server().receive(frames.PREFACE[:size]).fault is None
    assert make_server().receive(frames.PREFACE[: size - 1] + b"\0").fault.name == "PROTOCOL_ERROR"
