"""The reader of server-sent events: every byte is kept, and no chunking changes what is read."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.sse import SseEvent, SseEventTooLong, SseKind, SseReader

PIECES = st.sampled_from(
    [
        *[b"\n", b"\r", b"\r\n", b"data: ", b"data:", b"event: ", b"id: 7", b": keep-alive", b"x", b'{"a":1}', b"\xff"],
        *[b"\xef\xbb\xbf", b":", b" ", b"\n\n", b"\r\r", b"\r\n\r\n", b"\xc3\xa4"],
    ]
)
STREAMS = st.lists(PIECES, max_size=30).map(b"".join)


def read(chunks: list[bytes], *, limit: int = 1000) -> tuple[list[SseEvent], bytes, bool]:
    reader, events = SseReader(limit), []
    try:
        for chunk in chunks:
            events.extend(reader.feed(chunk))
    except SseEventTooLong:
        return events, reader.pending, True
    return events, reader.pending, False


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    marks = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[a:b] for a, b in itertools.pairwise(marks)]


@given(STREAMS, st.lists(st.integers(0, 500), max_size=12))
def test_no_chunking_changes_the_events_and_no_byte_is_lost(stream, places):
    events, pending, _ = read(cut(stream, places))
    assert b"".join(event.raw for event in events) + pending == stream
    assert (events, pending) == read([stream])[:2]


@given(STREAMS)
def test_a_stream_split_at_every_byte_gives_the_same_events(stream):
    assert read([bytes([byte]) for byte in stream]) == read([stream])


@given(STREAMS, st.lists(st.integers(0, 500), max_size=12))
def test_the_end_gives_what_was_pending(stream, places):
    reader, raw = SseReader(), b""
    for chunk in cut(stream, places):
        raw += b"".join(event.raw for event in reader.feed(chunk))
    raw += b"".join(event.raw for event in reader.close())
    assert raw == stream
    assert reader.pending == b""


@given(STREAMS, st.lists(st.integers(0, 500), max_size=12), st.integers(1, 12))
def test_the_limit_is_met_by_the_same_event_for_every_chunking(stream, places, limit):
    events, _, is_too_long = read([stream], limit=limit)
    others, _, other_is_too_long = read(cut(stream, places), limit=limit)
    assert all(len(event.raw) <= limit for event in others)
    assert others == events
    assert other_is_too_long == is_too_long


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_gives_the_same_fields(ending):
    lines = [b"\xef\xbb\xbfevent: note", b"data: one", b"data:two", b"", b": alive", b"", b""]
    events = [*(reader := SseReader()).feed(ending.join(lines)), *reader.close()]
    assert [(event.kind, event.event, event.data) for event in events[:2]] == [
        (SseKind.DATA, "note", b"one\ntwo"),
        (SseKind.COMMENT, "", b""),
    ]


def test_a_stream_of_carriage_returns_is_not_an_event_late():
    assert [event.data for event in SseReader().feed(b"data: x\r\r")] == [b"x"]


def test_crlf_stays_with_the_event_that_it_ends():
    reader = SseReader()
    assert list(reader.feed(b"data: x\r\n\r")) == []
    assert [event.raw for event in reader.feed(b"\ndata")] == [b"data: x\r\n\r\n"]


def test_an_event_without_end_is_refused_and_kept():
    reader = SseReader(limit_bytes=10)
    with pytest.raises(SseEventTooLong, match="longer than 10 bytes"):
        list(reader.feed(b"data: secret words"))
    assert reader.pending == b"data: secret words"


def test_no_content_stands_in_the_repr():
    [event] = SseReader().feed(b"data: secret\n\n")
    assert "secret" not in repr(event)


def test_a_cut_event_is_told_at_the_end():
    reader = SseReader()
    assert list(reader.feed(b"data: [DO")) == []
    [event] = reader.close()
    assert (event.data, event.is_complete) == (b"[DO", False)
