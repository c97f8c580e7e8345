"""The choice of an output filter: by the decision's name, by the kind of answer, and never by accident none."""

import json
from collections import Counter

import pytest

from fleet.output_policy import FailureMode, FilterPolicy
from gateway.ext_proc_contract import ResponseHead
from gateway.ext_proc_filters import FILTER_KEY, MAX_ANSWER_BYTES, AnswerTooLarge, OutputFilters, UnknownFilter
from gateway.output_filter.channel import CompiledPolicy

ANSWER = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "to ann@example.com"}}]})


@pytest.fixture(scope="module")
def policies():
    made = {mode: FilterPolicy(classes={"email": "mask"}, failure_mode=mode) for mode in FailureMode}
    return {mode.value: CompiledPolicy(policy) for mode, policy in made.items()}


@pytest.fixture
def filters(policies):
    made = OutputFilters(
        policies, key_of=lambda metadata: b"key", on_counts=lambda metadata, counts: noted.append(counts)
    )
    made.noted = noted = []
    return made


def head(name, content_type="application/json"):
    return ResponseHead({FILTER_KEY: name} if name else {}, {":status": "200", "content-type": content_type})


@pytest.mark.parametrize("name", [None, "", "other"])
def test_a_response_without_a_known_name_is_refused(filters, name):
    with pytest.raises(UnknownFilter, match="known are closed, open"):
        filters.choose(head(name))


def test_the_name_none_is_no_filter(filters):
    assert filters.choose(head("none")) is None


def test_the_failure_mode_is_the_policy_s(filters):
    assert [filters.choose(head(name)).fails_open for name in ("closed", "open")] == [False, True]


def test_a_stream_is_filtered_as_it_comes_and_its_values_are_counted(filters):
    chosen = filters.choose(head("closed", "text/event-stream; charset=utf-8"))
    pieces = ["to ann", "@exam", "ple.com", " and on"]
    events = [json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}) for piece in pieces]
    stream = b"".join(f"data: {event}\n\n".encode() for event in events) + b"data: [DONE]\n\n"
    shown = b"".join(chosen.filter.feed(stream[at : at + 7], 0.0) for at in range(0, len(stream), 7))
    shown += chosen.filter.close(0.0)
    lines = [json.loads(line[6:]) for line in shown.splitlines() if line.startswith(b"data: {")]
    text = "".join(line["choices"][0]["delta"]["content"] for line in lines)
    assert "example" not in text
    assert text.endswith(" and on")
    chosen.on_closed()
    assert filters.noted == [Counter(email=1)]


@pytest.mark.parametrize("content_type", ["application/json", "", "text/plain"])
def test_a_whole_answer_is_kept_until_its_end(filters, content_type):
    chosen = filters.choose(head("closed", content_type))
    assert chosen.filter.feed(ANSWER[:30].encode(), 0.0) == chosen.filter.feed(ANSWER[30:].encode(), 0.0) == b""
    assert chosen.filter.flush_due(9.0) == b""
    shown = json.loads(chosen.filter.close(0.0))
    assert shown["choices"][0]["message"]["content"] == "to [EMAIL]"
    assert chosen.filter.close(0.0) == b""


def test_an_answer_that_is_too_large_to_keep_ends_or_passes_as_the_policy_says(filters):
    closed, opened = (filters.choose(head(name)).filter for name in ("closed", "open"))
    half = b" " * (MAX_ANSWER_BYTES // 2 + 1)
    assert closed.feed(half, 0.0) == opened.feed(half, 0.0) == b""
    with pytest.raises(AnswerTooLarge):
        closed.feed(half, 0.0)
    assert opened.feed(half, 0.0) == half + half
    assert opened.feed(b"on", 0.0) == b"on"
    assert opened.close(0.0) == b""


def test_a_filter_that_can_not_read_an_answer_ends_or_passes_it_as_the_policy_says(filters, monkeypatch):
    def fail(body, answer):
        raise ValueError("unreadable")

    monkeypatch.setattr("gateway.ext_proc_filters.filter_answer", fail)
    closed, opened = (filters.choose(head(name)).filter for name in ("closed", "open"))
    closed.feed(b"x", 0.0)
    opened.feed(b"x", 0.0)
    with pytest.raises(ValueError, match="unreadable"):
        closed.close(0.0)
    assert opened.close(0.0) == b"x"
