"""Trace files: plain and gzip, any order, and one sentence for what can't be read."""

import gzip
import json
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.trace_file import Trace, TracedRequest, TraceError, trace_at

GOOD = {"timestamp": 1500, "input_length": 700, "output_length": 5, "hash_ids": [0, 1]}


def line(**changes):
    return json.dumps(GOOD | changes) + "\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t"])
def test_plain_and_gzip_are_told_by_their_content(tmp_path, pack, name):
    path = tmp_path / name
    path.write_bytes(pack((line() + "\n \n" + line(timestamp=2.5, more="x")).encode()))
    assert list(Trace(path).requests()) == [TracedRequest(1.5, 700, 5, (0, 1)), TracedRequest(0.0025, 700, 5, (0, 1))]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_the_summary_and_the_order_of_arrival(tmp_path_factory, stamps):
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    path.write_text("".join(line(timestamp=stamp) for stamp in stamps))
    summary = Trace(path).summary(512)
    assert (summary.requests, summary.input_tokens) == (len(stamps), 700 * len(stamps))
    assert summary.duration_seconds == pytest.approx((max(stamps) - min(stamps)) / 1000)
    assert summary.is_sorted == (stamps == sorted(stamps))
    ordered = [request.at_seconds for request in Trace(path).in_order(summary)]
    assert ordered == sorted(stamp / 1000 for stamp in stamps)


@pytest.mark.parametrize(("ids", "odd"), [([0, 1], 0), ([0], 0), ([], 1), ([0, 1, 2], 1)])
def test_prompts_with_ids_of_another_block_size_are_counted(tmp_path, ids, odd):
    path = tmp_path / "t.jsonl"
    path.write_text(line(hash_ids=ids))
    assert Trace(path).summary(512).odd_prompts == odd


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense\n", "line 1 is no JSON"),
        (line() + "[1]\n", "line 2 must be an object with timestamp"),
        ("[" * 100_000 + "\n", "line 1 is no JSON: it is nested too deeply"),
        (line(timestamp="now"), 'timestamp must be a number of milliseconds, not "now"'),
        (line(timestamp=True), "not true"),
        (line(timestamp=float("nan")), "not NaN"),
        (line(timestamp=1e300), "timestamp must be"),
        (line(input_length=-1), "input_length must be a whole number of tokens, not -1"),
        (line(input_length=2**60), "input_length must be"),
        (line(input_length=1.5), "input_length must be"),
        (line(output_length=None), "output_length must be a whole number of tokens, not null"),
        (line(hash_ids=None), "hash_ids must be a list of whole numbers, not null"),
        (line(hash_ids=[1, "x" * 100]), "hash_ids must be a list of whole numbers"),
        (line(hash_ids=[True]), "hash_ids must be"),
        ('{"timestamp": 1}\n', "input_length must be a whole number of tokens, not absent"),
        ("\xff\n", "line 1 is no JSON"),
        ("", "holds no requests"),
        ("\n\n", "holds no requests"),
        (line(input_length=0), "holds no prompt tokens"),
        ('{"timestamp": ' + "1" * 5000 + "}\n", "line 1 is no JSON"),
    ],
)
def test_what_is_no_trace_is_told_in_one_sentence(tmp_path, text, said):
    path = tmp_path / "t.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(TraceError) as error:
        Trace(path).summary(512)
    assert said in str(error.value)
    assert str(error.value).startswith(str(path))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300 + len(str(path))


def test_a_gzip_file_that_was_cut_or_broken_is_told(tmp_path):
    path = tmp_path / "t.gz"
    whole = gzip.compress((line() * 1000).encode())
    for data in (whole[:-20], whole[: len(whole) // 2], whole[:30] + b"xxxx" + whole[34:]):
        path.write_bytes(data)
        with pytest.raises(TraceError, match="no whole gzip file"):
            Trace(path).summary(512)


def test_absent_files_and_folders_are_told(tmp_path):
    with pytest.raises(TraceError, match="is a folder"), trace_at(tmp_path):
        pass
    with trace_at(tmp_path / "absent") as trace, pytest.raises(TraceError, match="No such file"):
        trace.summary(512)


def test_a_trace_may_come_through_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(line() * 3))
    writer.start()
    with trace_at(pipe) as trace:
        assert trace.summary(512).requests == trace.summary(512).requests == 3
        assert str(trace) == str(pipe)
    writer.join()
