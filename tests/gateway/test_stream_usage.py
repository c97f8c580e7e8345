"""Usage in streams: whatever the chunks are, a client sees the same, and the engine's figures are read."""

import json
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.stream_usage import StreamUsage
from gateway.token_usage import TokenUsage, usage_of

COUNTS = st.integers(0, 10**6)
TEXTS = st.sampled_from(["a", '"usage":null', ',"usage":{"prompt_tokens":1}', "\n\ndata: x", "é", ""])


def line(document: object) -> bytes:
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, bytes, TokenUsage, int]:
    """A stream with usage that was asked for, what the client must see, what it took, and its events."""
    texts = draw(st.lists(TEXTS, max_size=6))
    chunks = [{"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    prompt, output = draw(COUNTS), draw(COUNTS)
    cached = draw(st.integers(0, prompt))
    stated = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    comment = draw(st.sampled_from([b"", b": keep-alive\n\n"]))
    with_nulls = b"".join(line({**chunk, "usage": None}) for chunk in chunks)
    without = b"".join(map(line, chunks))
    sent = comment + with_nulls + line({"id": "c", "choices": [], "usage": stated}) + b"data: [DONE]\n\n"
    return sent, comment + without + b"data: [DONE]\n\n", TokenUsage(prompt, cached, output), len(chunks)


def fed(stream: StreamUsage, sent: bytes, cuts: list[int]) -> bytes:
    """What comes out of a stream that is cut at some places."""
    places = sorted({0, len(sent), *(cut % (len(sent) + 1) for cut in cuts)})
    parts = [sent[start:end] for start, end in pairwise(places)]
    return b"".join(map(stream.feed, parts)) + stream.finish()


@given(streams(), st.lists(st.integers(0, 10**6), max_size=20))
def test_what_was_asked_for_in_the_clients_place_is_gone_and_all_else_is_there(
    case: tuple[bytes, bytes, TokenUsage, int], cuts: list[int]
) -> None:
    sent, expected, usage, events = case
    stream = StreamUsage(is_injected=True)
    assert fed(stream, sent, cuts) == expected
    assert (stream.usage, stream.events) == (usage, events)


@given(streams())
def test_it_is_the_same_with_a_chunk_for_each_byte(case: tuple[bytes, bytes, TokenUsage, int]) -> None:
    sent, expected, usage, _ = case
    stream = StreamUsage(is_injected=True)
    assert fed(stream, sent, list(range(len(sent)))) == expected
    assert stream.usage == usage


PARTS = (
    '"a":1', '"usage":null', '"usage": null', '"usage":{"prompt_tokens":1}', '"t":"\\"usage\\":null"',
    '"choices":[]', '"type":"message_start"', '"o":{"b":2,"usage":null}',
)  # fmt: skip
EVENTS = st.lists(st.sampled_from(PARTS), max_size=3).flatmap(
    lambda parts: st.sampled_from(["data: {", "data:{", ": x\n\ndata: {", "data: [DONE]\n\ndata: {"]).flatmap(
        lambda start: st.sampled_from([",", ", "]).map(lambda comma: f"{start}{comma.join(parts)}}}\n\n".encode())
    )
)


@given(st.lists(EVENTS, max_size=6), st.integers(1, 3), st.booleans())
def test_whole_events_give_what_single_bytes_give(events: list[bytes], together: int, is_injected: bool) -> None:
    whole, bytewise = StreamUsage(is_injected=is_injected), StreamUsage(is_injected=is_injected)
    pieces = [b"".join(events[at : at + together]) for at in range(0, len(events), together)]
    shown = b"".join(map(whole.feed, pieces)) + whole.finish()
    sent = b"".join(events)
    assert shown == b"".join(bytewise.feed(sent[at : at + 1]) for at in range(len(sent))) + bytewise.finish()
    assert (whole.usage, whole.events) == (bytewise.usage, bytewise.events)


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=9))
def test_any_bytes_pass_as_they_are_where_the_client_asked_itself(sent: bytes, cuts: list[int]) -> None:
    assert fed(StreamUsage(is_injected=False), sent, cuts) == sent


@given(streams(), st.lists(st.integers(0, 10**6), max_size=20))
def test_a_client_that_asked_itself_sees_its_usage(case: tuple[bytes, bytes, TokenUsage, int], cuts: list[int]) -> None:
    sent, _, usage, _ = case
    stream = StreamUsage(is_injected=False)
    assert fed(stream, sent, cuts) == sent
    assert stream.usage == usage


def test_anthropics_words_and_those_of_responses_are_read() -> None:
    stream = StreamUsage(is_injected=False)
    stream.feed(line({"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 0}}}))
    stream.feed(line({"type": "message_delta", "usage": {"output_tokens": 12}}))
    assert stream.usage == TokenUsage(3, 0, 12)
    assert usage_of({"input_tokens": 3, "cache_read_input_tokens": 9, "output_tokens": 1}) == TokenUsage(12, 9, 1)
    of_response = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 2}
    stream = StreamUsage(is_injected=False)
    stream.feed(line({"type": "response.completed", "response": {"usage": of_response}}))
    assert stream.usage == TokenUsage(10, 4, 2)


def named(name: str, **members: object) -> bytes:
    return f"event: {name}\n".encode() + line({"type": name, **members})


@given(COUNTS, COUNTS, st.integers(0, 9), st.integers(0, 20))
def test_a_message_that_is_cut_counts_what_was_sent_and_a_whole_one_what_it_says(
    prompt: int, output: int, pieces: int, seen: int
) -> None:
    events = [
        named("message_start", message={"usage": {"input_tokens": prompt, "output_tokens": 0}}),
        named("content_block_start", index=0),
        *[named("content_block_delta", index=0, delta={"text": "a"})] * pieces,
        named("content_block_stop", index=0),
        named("message_delta", usage={"input_tokens": prompt, "output_tokens": output}),
        named("message_stop"),
    ]
    stream = StreamUsage(is_injected=False)
    for event in events[:seen]:
        assert stream.feed(event) == event
    if not seen:
        assert stream.usage is None
    elif seen > pieces + 3:
        assert stream.usage == TokenUsage(prompt, 0, output)
    else:
        assert stream.usage == TokenUsage(prompt, 0, min(max(0, seen - 2), pieces))


def test_a_response_that_is_cut_counts_its_deltas() -> None:
    stream = StreamUsage(is_injected=False)
    stream.feed(named("response.created", response={"usage": None}))
    stream.feed(named("response.output_text.delta", delta="a") * 3)
    assert (stream.usage, stream.events) == (None, 3)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_nothing_that_is_no_usage_is_taken_for_one(stated: object) -> None:
    assert usage_of(stated) is None or isinstance(stated, dict)


def test_wrong_figures_are_none() -> None:
    for wrong in (-1, 1.5, "3", True, 10**12):
        assert usage_of({"prompt_tokens": wrong}) is None
