"""Sentences wait for their verdicts: what is asked is what the client would see, and nothing overtakes it."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.output_policy import FailureMode, FilterPolicy, Moderation
from gateway.output_filter.channel import CompiledPolicy
from gateway.output_filter.sentences import SentenceGate
from gateway.output_filter.stream_filter import StreamFilter
from tests.gateway.output_filter.filtered_streams import DONE, chat_texts, delta, documents

CLOSED = CompiledPolicy(FilterPolicy(moderation=Moderation(window=60)))
OPEN = CompiledPolicy(FilterPolicy(moderation=Moderation(window=60, failure_mode=FailureMode.OPEN)))
TEXTS = st.text(alphabet='ab .!?\n"。x', max_size=300)
CUTS = st.lists(st.integers(0, 300), max_size=20)


@given(TEXTS, CUTS)
def test_every_chunking_gives_the_same_sentences(text, places):
    def cut(chunks):
        gate, known, found = SentenceGate(40), 0, []
        for chunk in chunks:
            gate.feed(chunk)
            known += len(chunk)
            found += gate.cut(known, is_end=False)
        return found + gate.cut(known, is_end=True)

    marks = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    whole = cut([text])
    assert cut([text[a:b] for a, b in itertools.pairwise(marks)]) == whole
    assert "".join(sentence for _, _, sentence in whole) == text
    assert all(len(sentence) <= 40 for _, _, sentence in whole)


@settings(max_examples=50)
@given(TEXTS, st.randoms(use_true_random=False))
def test_verdicts_in_any_order_let_everything_pass_in_order(text, chance):
    growing = StreamFilter(CLOSED)
    stream = [delta(0, {"content": text[at : at + 3]}) for at in range(0, len(text), 3)]
    out, asked = b"", []
    for chunk in [*stream, delta(0, {}, "stop"), DONE]:
        out += growing.feed(chunk, 0.0)
        asked += growing.questions()
    out += growing.close(0.0)
    asked += growing.questions()
    assert text.startswith(chat_texts(out).get((0, "content"), ""))
    chance.shuffle(asked)
    for question in asked:
        out += growing.verdict(question.number, may_pass=True)
    assert growing.is_over
    assert out == b"".join([*stream, delta(0, {}, "stop"), DONE])


def test_a_sentence_is_asked_masked_and_the_answer_ends_before_a_bad_one():
    growing = StreamFilter(CLOSED)
    stream = [
        delta(0, {"content": text}) for text in ("Ask ja", "ne@example", ".com now. The", " bad one! And", " more")
    ]
    assert growing.feed(b"".join(stream), 0.0) == b""
    first, second = growing.questions()
    assert (first.text, second.text) == ("Ask [EMAIL] now. ", "The bad one! ")
    assert growing.questions() == []
    assert chat_texts(growing.verdict(first.number, may_pass=True)) == {(0, "content"): "Ask [EMAIL]"}
    out = growing.verdict(second.number, may_pass=False)
    assert chat_texts(out) == {(0, "content"): " now. "}
    assert documents(out)[-1]["choices"][0]["finish_reason"] == "content_filter"
    assert (growing.blocked, growing.has_ended, growing.counts["moderation"]) == ("moderation", True, 1)
    assert "bad" not in repr(second)


@pytest.mark.parametrize(("policy", "ends"), [(CLOSED, True), (OPEN, False)])
def test_a_verdict_that_does_not_come_is_a_failure_of_the_hook(policy, ends):
    growing = StreamFilter(policy)
    assert growing.feed(delta(0, {"content": "Half a sen"}), 0.0) == b""
    assert growing.due == 2.0
    assert growing.flush_due(2.0) == b""  # asked as it is
    assert [question.text for question in growing.questions()] == ["Half a sen"]
    assert growing.due == 7.0
    out = growing.flush_due(7.0)
    assert growing.has_ended == ends
    assert (b"output_filter_failed" in out) == ends
    assert ends or out == delta(0, {"content": "Half a sen"})


def test_a_keep_alive_passes_while_a_verdict_is_missing():
    growing = StreamFilter(CLOSED)
    growing.feed(delta(0, {"content": "A whole one. "}), 0.0)
    assert growing.feed(b": keep-alive\n\n", 1.0) == b": keep-alive\n\n"
