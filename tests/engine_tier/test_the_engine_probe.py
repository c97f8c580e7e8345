"""What needs no engine of the tier: when it is left out, and how the shapes of answers are compared."""

import pytest

from tests.engine_tier.real_engine import PROGRAM, available_bytes, why_not
from tests.engine_tier.shapes import families, keys, order


def test_a_machine_without_the_program_or_without_memory_is_told_why(tmp_path):
    program = PROGRAM.with_name("none")
    assert why_not(program) == "no vLLM in .tools/vllm; `make tools-engine` installs it (6 GB)"
    there = tmp_path / "vllm"
    there.touch()
    assert why_not(there, 2 * 10**9) == "2.0 GB of memory are free, two replicas take 5"
    assert why_not(there, 10**10) is None


def test_free_memory_is_what_linux_says_or_plenty(tmp_path):
    said = tmp_path / "meminfo"
    assert available_bytes(said) > 10**11
    said.write_text("MemTotal: 9 kB\nMemAvailable:       7 kB\n")
    assert available_bytes(said) == 7 * 1024


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ({"a": 1, "b": {"c": None}}, {"b": {"c": "x"}, "a": [2]}, True),
        ({"a": [{"b": 1}, {"b": 2}]}, {"a": [{"b": 3}]}, True),
        ({"a": [{"b": 1}]}, {"a": [{"b": 3}, {"c": 1}]}, False),
        ({"a": 1}, {"a": {}}, False),
    ],
)
def test_documents_are_alike_by_their_names(one, other, is_same):
    assert (keys(one) == keys(other)) is is_same


def test_streams_are_alike_by_the_order_of_their_events():
    one = 'data: {"a": 1}\n\ndata: {"a": 2}\n\ndata: [DONE]\n\n'
    assert order(one) == order('data: {"a": 3}\n\ndata: [DONE]\n\n')
    assert order(one) != order('event: x\ndata: {"a": 3}\n\ndata: [DONE]\n\n')
    assert order(one) != order('data: [DONE]\n\ndata: {"a": 3}\n\n')


def test_metrics_are_families_with_types_and_names_of_labels():
    page = '# TYPE vllm:x_total counter\nvllm:x_total{a="1",b="2,3"} 4.0\nother{c="1"} 2\n'
    assert families(page) == ({"vllm:x_total": "counter"}, {"vllm:x_total": {"a", "b"}})
