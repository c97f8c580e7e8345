"""Pools for prefill and decode: their ratio, and why not."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.disaggregation import MAX_POOL, disaggregation, pool_ratio
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import figures_of
from fleet.plan_wish import PlanWish

SECONDS = st.floats(min_value=0, max_value=1e4)
LONG = PlanWish(input_tokens=32000, output_tokens=300, concurrency=16, engine_version="0.33.0")


def asked(wish):
    model = read_model(find("Qwen/Qwen3-32B").config, id="Qwen/Qwen3-32B")
    return disaggregation(
        figures_of(model, None, "auto"),
        ParallelPlan(tensor=2),
        hardware.gpu("H100"),
        wish,
        parameters_active=32_000_000_000,
        kv_bytes_per_token=262144,
    )


@given(prefill=SECONDS, decode=SECONDS)
def test_pools_are_whole_and_small(prefill, decode):
    for pool in pool_ratio(prefill, decode):
        assert 1 <= pool <= MAX_POOL


@given(tokens=st.integers(min_value=4096, max_value=100_000), more=st.integers(min_value=1, max_value=100_000))
def test_longer_answers_never_take_fewer_decode_replicas_per_prefill_replica(tokens, more):
    short = asked(dataclasses.replace(LONG, input_tokens=tokens))
    long = asked(dataclasses.replace(LONG, input_tokens=tokens, output_tokens=300 + more))
    assert long.prefill_replicas / long.decode_replicas <= short.prefill_replicas / short.decode_replicas


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"input_tokens": 500}, "below 4096"),
        ({"input_tokens": None}, "no length of prompts"),
        ({"engine": "tensorrt-llm", "engine_version": None}, "orchestrator"),
        ({"engine": "sglang", "engine_version": "0.4.3"}, "older than 0.4.10.post2"),
        ({"closed_paths": frozenset({"disaggregation"})}, "closed by advisories"),
        ({"disaggregation": False}, "not wished for"),
    ],
)
def test_a_refusal_says_why(change, words):
    found = asked(dataclasses.replace(LONG, **change))
    assert not found.proposed
    assert words in found.reason
