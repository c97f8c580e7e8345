"""Answers to picked requests: what passes, what is held, what is told, and how filters fail."""

import json

import pytest

from fleet.output_policy import FailureMode, FilterPolicy
from gateway.answer_filter import RouteFilter
from gateway.attempt import MAX_WHOLE_BYTES
from gateway.output_filter.channel import CompiledPolicy
from gateway.passage import End
from gateway.picked_answer import (
    AnswerTooLarge,
    AnswerWatch,
    FilteredStreamAnswer,
    FilteredWholeAnswer,
    StreamAnswer,
    WholeAnswer,
)
from gateway.token_usage import TokenUsage

ANSWER = json.dumps(
    {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "to ann@example.com"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
).encode()


class Told:
    """Everybody who is told something."""

    def __init__(self):
        self.begun, self.over, self.filtered = 0, [], []
        self.watch = AnswerWatch(self._begin, lambda *said: self.over.append(said))

    def _begin(self):
        self.begun += 1

    def asked(self, model, counts, blocked):
        """Requests are not filtered here."""

    def answered(self, model, counts, blocked, failure):
        self.filtered.append((dict(counts), blocked, failure))

    def chosen(self, mode):
        policy = CompiledPolicy(FilterPolicy(classes={"email": "mask"}, failure_mode=mode))
        return RouteFilter(policy, self, b"").of("acme", "m", {})


@pytest.fixture
def told():
    return Told()


def test_a_whole_answer_passes_in_its_pieces_and_its_usage_is_told_at_its_end(told):
    answer = WholeAnswer(told.watch)
    pieces = [ANSWER[at : at + 9] for at in range(0, len(ANSWER), 9)]
    assert [answer.feed(piece, 0.0) for piece in pieces] == pieces
    assert (answer.close(0.0), answer.flush_due(0.0), told.begun) == (b"", b"", 1)
    assert told.over == [(End.WHOLE, TokenUsage(3, 0, 4), 0)]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"usage":7}', b"[" * 100_000])
def test_an_answer_without_usage_tells_none(told, body):
    answer = WholeAnswer(told.watch)
    answer.feed(body, 0.0)
    answer.close(0.0)
    assert (told.over, told.begun) == ([(End.WHOLE, None, 0)], bool(body))


def test_an_answer_that_is_too_large_to_keep_passes_without_its_usage(told):
    answer, half = WholeAnswer(told.watch), b" " * (MAX_WHOLE_BYTES // 2 + 1)
    assert [answer.feed(piece, 0.0) for piece in (half, half, b"on")] == [half, half, b"on"]
    answer.close(0.0)
    assert told.over == [(End.WHOLE, None, 0)]


def test_a_stream_tells_its_events_and_its_usage(told):
    answer = StreamAnswer(told.watch, is_usage_injected=False)
    stream = b'data: {"choices":[{}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n'
    assert answer.feed(stream, 0.0) + answer.close(0.0) == stream
    assert (told.over, answer.has_ended, answer.flush_due(0.0)) == ([(End.WHOLE, TokenUsage(3, 0, 4), 2)], False, b"")


def test_a_filtered_stream_lets_go_what_is_decided_and_tells_its_values(told):
    answer = FilteredStreamAnswer(told.watch, told.chosen(FailureMode.CLOSED), is_usage_injected=True)
    pieces = ["to ann", "@exam", "ple.com", " and on"]
    events = [json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in pieces]
    stream = b"".join(f"data: {event}\n\n".encode() for event in events)
    stream += b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\ndata: [DONE]\n\n'
    shown = b"".join(answer.feed(stream[at : at + 7], 0.0) for at in range(0, len(stream), 7)) + answer.close(0.0)
    lines = [json.loads(line[6:]) for line in shown.splitlines() if line.startswith(b"data: {")]
    text = "".join(line["choices"][0]["delta"]["content"] for line in lines)
    assert text == "to [EMAIL] and on"
    assert b"usage" not in shown
    answer.tell()
    assert (told.over, told.filtered) == ([(End.WHOLE, TokenUsage(3, 0, 4), 4)], [({"email": 1}, None, None)])


def test_what_a_filter_holds_leaves_in_time(told):
    answer = FilteredStreamAnswer(told.watch, told.chosen(FailureMode.CLOSED), is_usage_injected=False)
    event = b'data: {"choices":[{"index":0,"delta":{"content":"word"}}]}\n\n'
    shown = answer.feed(event, 0.0) + answer.flush_due(60.0)
    assert shown == event


def test_a_whole_answer_leaves_filtered_at_its_end(told):
    answer = FilteredWholeAnswer(told.watch, told.chosen(FailureMode.CLOSED))
    assert [answer.feed(ANSWER[:30], 0.0), answer.feed(ANSWER[30:], 0.0), answer.flush_due(9.0)] == [b"", b"", b""]
    assert json.loads(answer.close(0.0))["choices"][0]["message"]["content"] == "to [EMAIL]"
    assert (answer.instead(), told.over) == (None, [(End.WHOLE, TokenUsage(3, 0, 4), 0)])


def test_an_answer_that_is_too_large_to_filter_ends_or_passes_as_the_policy_says(told):
    closed = FilteredWholeAnswer(told.watch, told.chosen(FailureMode.CLOSED))
    opened = FilteredWholeAnswer(told.watch, told.chosen(FailureMode.OPEN))
    half = b" " * (MAX_WHOLE_BYTES // 2 + 1)
    assert closed.feed(half, 0.0) == opened.feed(half, 0.0) == b""
    with pytest.raises(AnswerTooLarge):
        closed.feed(half, 0.0)
    assert closed.feed(b"on", 0.0) == closed.close(0.0) == b""
    assert opened.feed(half, 0.0) == half + half
    assert (opened.feed(b"on", 0.0), opened.close(0.0)) == (b"on", b"")
    assert told.filtered == [({}, None, "AnswerTooLarge")] * 2


def test_an_answer_that_can_not_be_read_ends_or_passes_as_the_policy_says(told, monkeypatch):
    def fail(body, answer):
        raise ValueError("unreadable")

    monkeypatch.setattr("gateway.filtered_whole.filter_answer", fail)
    closed = FilteredWholeAnswer(told.watch, told.chosen(FailureMode.CLOSED))
    opened = FilteredWholeAnswer(told.watch, told.chosen(FailureMode.OPEN))
    closed.feed(b"x", 0.0)
    opened.feed(b"x", 0.0)
    assert (closed.close(0.0), closed.instead().status, closed.instead().code) == (
        b"",
        503,
        "output_filter_unavailable",
    )
    assert (opened.close(0.0), opened.instead()) == (b"x", None)
