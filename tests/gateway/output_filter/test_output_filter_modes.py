"""Blocking, failing and waiting: how a filtered stream ends, and what leaves when the engine is silent."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.output_policy import FailureMode, FilterPolicy, Mode, OwnPattern
from gateway.output_filter import event_reader
from gateway.output_filter.channel import CompiledPolicy
from gateway.output_filter.stream_filter import MAX_HELD_EVENTS, StreamFilter
from tests.gateway.output_filter.filtered_streams import DONE, chat_texts, cut, delta, documents, line, run_filter

MASKING = CompiledPolicy(FilterPolicy())
BLOCKING = CompiledPolicy(FilterPolicy(classes={"email": Mode.BLOCK, "card": Mode.HASH}, denied=("project falcon",)))
OPEN = CompiledPolicy(FilterPolicy(failure_mode=FailureMode.OPEN))
KEEP_ALIVE = b": keep-alive\n\n"


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=12))
def test_a_blocked_value_ends_a_chat_before_it(places):
    texts = ["Hello", " there ", "ja", "ne@exam", "ple.com", " and", " more"]
    stream = b"".join([*(delta(index, {"content": text}) for text in texts for index in (0, 1)), DONE])
    out, growing = run_filter(BLOCKING, cut(stream, places))
    assert chat_texts(out)[0, "content"] == "Hello there "
    last = documents(out)[-1]
    assert [choice["finish_reason"] for choice in last["choices"]] == ["content_filter", "content_filter"]
    assert last["id"] == "chatcmpl-1"
    assert out.endswith(DONE)
    assert (growing.blocked, growing.has_ended) == ("email", True)
    assert growing.feed(stream, 0.0) == b""


def test_what_stands_before_a_blocked_value_in_its_event_leaves():
    out, _ = run_filter(BLOCKING, [delta(0, {"content": "call project FALCON now"}), DONE])
    assert chat_texts(out) == {(0, "content"): "call "}


@pytest.mark.parametrize(
    ("kind", "members", "expected"),
    [
        ("response.output_text.delta", {"delta": "a@b.org "}, "content_filter"),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "a@b.org "}}, "api_error"),
        ("response.completed", {"response": {"output": [{"text": "a@b.org"}]}}, "content_filter"),
    ],
)
def test_other_apis_end_with_their_error_event(kind, members, expected):
    out, growing = run_filter(BLOCKING, [line({"type": kind, **members}, kind), DONE])
    assert out.startswith(b"event: error\n")
    assert expected in out.decode()
    assert growing.blocked == "email"


def test_a_hash_is_stable_within_a_conversation():
    stream = [delta(0, {"content": "4111 1111 1111 1111 and 4111-1111-1111-1111."}), DONE]
    first, again, other = (chat_texts(run_filter(BLOCKING, stream, key)[0])[0, "content"] for key in (b"a", b"a", b"b"))
    assert first == again != other
    one, _, two = first.rstrip(".").partition(" and ")
    assert one == two
    assert one.startswith("[CARD:")


class TestFailure:
    """What the filter can't read."""

    @pytest.mark.parametrize("bad", [b'data: {"a":1,"a":"x"}\n\n', b"data: " + b"[" * 3000 + b"]" * 3000 + b"\n\n"])
    def test_it_ends_the_answer_by_default(self, bad):
        out, growing = run_filter(MASKING, [delta(0, {"content": "jane"}), bad, delta(0, {"content": "more"})])
        [document] = documents(out)
        assert document["error"]["code"] == "output_filter_failed"
        assert out.endswith(DONE)
        assert growing.has_ended

    def test_an_open_route_passes_everything_from_there_on(self):
        stream = [delta(0, {"content": "jane"}), b'data: {"a":1,"a":"x"}\n\n', delta(0, {"content": "@example.com"})]
        out, growing = run_filter(OPEN, stream)
        assert out == b"".join(stream)
        assert not growing.has_ended

    def test_an_event_that_does_not_end_is_a_failure(self):
        growing = StreamFilter(MASKING, limit_bytes=100)
        assert b"output_filter_failed" in growing.feed(b"data: " + b"x" * 100, 0.0)
        assert growing.feed(b"x", 0.0) + growing.close(0.0) == b""

    def test_a_fault_of_its_own_is_a_failure(self, monkeypatch):
        monkeypatch.setattr(event_reader, "parse", lambda _: 1 / 0)
        out, growing = run_filter(MASKING, [delta(0, {"content": "jane@example.com"})])
        assert b"jane" not in out
        assert b"output_filter_failed" in out
        assert growing.failure == "ZeroDivisionError"


class TestTime:
    """What leaves when the engine is silent."""

    def test_a_word_leaves_at_the_bound_and_what_grows_from_it_is_masked(self):
        growing = StreamFilter(MASKING)
        assert growing.feed(delta(0, {"content": "ask jane"}), 10.0) == b""
        assert growing.due == 12.0
        assert growing.flush_due(11.9) == b""
        assert growing.flush_due(12.0) == delta(0, {"content": "ask jane"})
        assert growing.due is None
        assert chat_texts(growing.feed(delta(0, {"content": "@example.com ok "}), 13.0)) == {
            (0, "content"): "[EMAIL] ok "
        }

    def test_a_candidate_is_masked_at_the_bound(self):
        growing = StreamFilter(MASKING)
        growing.feed(delta(0, {"content": "pay 4111 1111"}), 10.0)
        assert chat_texts(growing.flush_due(12.0)) == {(0, "content"): "pay [CARD]"}
        assert chat_texts(growing.feed(delta(0, {"content": " 1111 1111 now "}), 13.0)) == {(0, "content"): " now "}

    @pytest.mark.parametrize("text", ["x \\", "jane\\u00", "4111 1", "a@b", "wo"])
    def test_a_keep_alive_finds_nothing_that_can_wait_longer(self, text):
        growing = StreamFilter(MASKING)
        growing.feed(delta(0, {"content": text}), 10.0)
        assert growing.feed(KEEP_ALIVE, 11.0).endswith(KEEP_ALIVE)
        assert growing.due is None

    def test_a_keep_alive_does_not_overtake_what_is_held(self):
        growing = StreamFilter(MASKING)
        growing.feed(delta(0, {"content": "ask jane"}), 10.0)
        assert growing.feed(KEEP_ALIVE, 11.0) == delta(0, {"content": "ask jane"}) + KEEP_ALIVE

    def test_a_text_that_waits_does_not_hold_up_others_without_bound(self):
        growing = StreamFilter(MASKING)
        held = [delta(0, {"content": "jane@exam"}), *[delta(1, {"content": "word "})] * (2 * MAX_HELD_EVENTS)]
        out = growing.feed(b"".join(held), 0.0)
        assert len(documents(out)) >= MAX_HELD_EVENTS
        assert b"jane" not in out

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.sampled_from([" a", "jane77", "@", "exa", "mple.com", " 4111", " 1111", " ", "."]), max_size=30))
    def test_nothing_is_held_beyond_the_bound(self, texts):
        growing = StreamFilter(MASKING)
        for number, text in enumerate(texts):
            growing.feed(delta(0, {"content": text}), float(number))
            growing.flush_due(number + 0.5)
            assert growing.due is None or growing.due > number + 0.5


def test_nothing_of_an_answer_stands_in_a_repr():
    growing = StreamFilter(MASKING, b"secret")
    growing.feed(delta(0, {"content": "jane@example.com or bob"}), 0.0)
    shown = [growing, growing._held, growing._texts, growing._answer, growing._reader, *growing._held[0].slots]
    assert not any(word in repr(shown) for word in ("jane", "bob", "secret"))
    assert json.dumps(growing.counts) == '{"email": 1}'


def test_own_patterns_hold_and_mask_across_events():
    policy = CompiledPolicy(FilterPolicy(classes={}, patterns=(OwnPattern(name="ticket", pattern=r"\bACME-\d{4}\b"),)))
    texts = ("see AC", "ME-", "12", "34, not ACME-12", "345 or", " xACME-1234.")
    out, growing = run_filter(policy, [*(delta(0, {"content": text}) for text in texts), DONE])
    assert chat_texts(out)[0, "content"] == "see [TICKET], not ACME-12345 or xACME-1234."
    assert growing.counts == {"ticket": 1}
