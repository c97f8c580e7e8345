"""What a query gives: how many series, of which kind, from which metrics."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud.promql import MAX_DEPTH, UnreadableQuery, shape_of

SINGLE = {
    "sum(vllm:num_requests_waiting)": "sum",
    'sum(vllm:num_requests_waiting{model_name="a{b}",pod!~"x.*"})': "sum",
    'sum(a{x="1"}) + sum(b{x="2"})': "sum",
    "sum by () (a)": "sum",
    "sum(a) by ()": "sum",
    "count(up == 1)": "sum",
    "avg(max_over_time(vllm:kv_cache_usage_perc[1m]))": "average",
    "max(a)": "average",
    "quantile(0.9, a)": "average",
    "sum(a) / count(a)": "average",
    "sum(rate(a[5m])) / sum(rate(b[5m]))": "average",
    "sum(a) / 4": "sum",
    "clamp_min(sum(a), 0)": "sum",
    "max(sum(a))": "sum",
    "sum(a) or vector(0)": "sum",
    "vector(0) or avg(a)": "average",
    "avg(a) or (0 * sum(b) unless on() count(up == 1))": "average",
    "-sum(a)": "sum",
    "sum(a offset 5m) and on() sum(b) > 3": "sum",
    "sum(a @ end())": "sum",
    "scalar(a)": "series",
    "1 + 2 * 3 ^ 2": "number",
    "vector(1)": "number",
    "sum(sum by (pod) (a))": "sum",
    "sum(a) > bool 3": "sum",
    "sum_over_time(sum(a)[5m:1m])": "sum",
}
SEVERAL = (
    "vllm:num_requests_waiting",
    'vllm:num_requests_waiting{model_name="m"}',
    "sum by (pod) (a)",
    "sum(a) by (pod)",
    "sum without (pod) (a)",
    "topk(3, a)",
    "rate(a[5m])",
    "sum(a) or b",
    "a / sum(b)",
    '{__name__="a"}',
    "avg by (namespace, pod) (a) > 3",
)
UNREADABLE = ("", "sum(", "sum()", "sum(a))", "a b", "sum(a) +", "sum(a}", "a{b", ") a", "a ? b", "sum(a[5m)")


@pytest.mark.parametrize(("query", "kind"), SINGLE.items())
def test_one_series_and_its_kind(query: str, kind: str) -> None:
    found = shape_of(query)
    assert (found.is_single, found.kind) == (True, kind)


@pytest.mark.parametrize("query", SEVERAL)
def test_several_series(query: str) -> None:
    assert not shape_of(query).is_single


@pytest.mark.parametrize("query", UNREADABLE)
def test_what_is_no_promql_says_so(query: str) -> None:
    with pytest.raises(UnreadableQuery):
        shape_of(query)


def test_a_metric_behind_or_stands_in_for_the_first_and_one_behind_unless_is_never_needed() -> None:
    assert shape_of("sum(a or b) + sum(c)").needs == (frozenset({"a", "b"}), frozenset({"c"}))
    assert shape_of("sum(a) unless on() sum(b)").metrics == frozenset({"a"})
    assert shape_of("sum(a) or vector(0)").needs == ()


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(UnreadableQuery, match=f"deeper than {MAX_DEPTH}"):
        shape_of("(" * 100_000 + "a" + ")" * 100_000)


@given(st.text(alphabet=string.ascii_letters + string.digits + "(){}[]+-*/ ,\"'=<>!~:._@", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = shape_of(text)
    except UnreadableQuery:
        return
    assert found.kind in {"number", "sum", "average", "series"}


@given(st.sampled_from([*SINGLE, *SEVERAL]))
def test_brackets_and_blanks_change_nothing(query: str) -> None:
    assert shape_of(f"  ( {query} )\n") == shape_of(query)


@given(st.sampled_from(SEVERAL), st.sampled_from(["sum", "avg", "max", "count"]))
def test_an_aggregation_makes_one_series_of_many(query: str, word: str) -> None:
    assert shape_of(f"{word}({query})").is_single
    assert not shape_of(f"{word} by (pod) ({query})").is_single


FIXED = (
    'sum by (namespace) (a{namespace="x"})',
    "histogram_quantile(0.9, sum by (le) (rate(a_bucket[5m])))",
    "sum(a) # a comment",
    "# first\nsum(a)",
    'sum without (pod) (sum by (pod, job) (a{job="x"}))',
    'sum by (job) (a{job=~"x"})',
)


@pytest.mark.parametrize("query", FIXED)
def test_labels_with_one_value_make_no_series_of_their_own(query: str) -> None:
    assert shape_of(query).is_single


@pytest.mark.parametrize(
    "query", ['sum by (job) (a{job=~"x|y"})', 'sum by (job) (a{job!="x"})', "sum by (le, pod) (a)", "sum by (job) (a)"]
)
def test_labels_with_several_values_do(query: str) -> None:
    assert not shape_of(query).is_single


@pytest.mark.parametrize(
    ("query", "needs"),
    [
        ('sum({__name__="vllm:a"})', {"vllm:a"}),
        ('sum({"vllm:a", job="x"})', {"vllm:a"}),
        ('sum({__name__=~"a|b"})', {"a", "b"}),
        ('sum(c{job="a"})', {"c"}),
    ],
)
def test_metrics_are_named_by_word_by_label_or_by_text(query: str, needs: set[str]) -> None:
    found = shape_of(query)
    assert (found.needs, found.unnamed) == ((frozenset(needs),), False)


@pytest.mark.parametrize("query", ['sum({job="x"})', 'sum({__name__=~"a.*"})', 'sum({__name__!="a"})', "sum({})"])
def test_series_without_a_metric_are_said_to_be_unnamed(query: str) -> None:
    assert shape_of(query).unnamed


@pytest.mark.parametrize(
    "query", ["vector(0)", "sum(a) or vector(0)", "sum(a or vector(0))", "sum(a) or absent(a) * 0"]
)
def test_what_needs_no_metric_answers_always(query: str) -> None:
    assert shape_of(query).always


@given(st.sampled_from([*SINGLE, *SEVERAL]))
def test_only_constants_answer_always(query: str) -> None:
    assert shape_of(query).always == ("vector(" in query or shape_of(query).kind == "number")


THERE = frozenset({"gateway"})


@pytest.mark.parametrize(
    ("query", "given_"),
    [
        ("sum(gateway)", "value"),
        ('sum({__name__="gateway"})', "value"),
        ("sum(a) or sum(gateway)", "value"),
        ("sum(gateway) > 0", "value"),
        ("clamp_min(sum(gateway) / 4, 0)", "value"),
        ("sum(gateway) and on() sum(a)", "nothing"),
        ("sum(gateway) * sum(a)", "nothing"),
        ("sum(a)", "nothing"),
        ('sum(a{model="gateway"})', "nothing"),
        ("0 * sum(gateway)", "constant"),
        ("sum(gateway) * (1 - 1)", "constant"),
        ("count(gateway)", "constant"),
        ("sum(gateway) < 1", "constant"),
        ("sum(a) or (0 * sum(gateway) unless on() count(up == 1))", "constant"),
        ("sum(gateway) unless on() sum(gateway)", "nothing"),
        ("absent(a)", "constant"),
    ],
)
def test_what_a_query_gives_of_the_metrics_that_are_there(query: str, given_: str) -> None:
    assert shape_of(query, THERE).given == given_


def test_parts_that_stand_in_for_each_other_without_end_are_refused() -> None:
    part = " or ".join(f"(a{number} + b{number})" for number in range(12))
    with pytest.raises(UnreadableQuery, match="stand in for each other"):
        shape_of(f"sum({part})")


@given(st.integers(1, 2000))
def test_a_flat_query_of_any_length_is_read(length: int) -> None:
    assert shape_of("sum(" + " or ".join(["a"] * length) + ")").needs == (frozenset({"a"}),)
