"""Pools for prefill and decode: their ratio, and why not."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.disaggregation import MAX_POOL, disaggregation, pool_ratio
from fleet.kv_cache import kv_bytes_per_token, kv_sliding
from fleet.kv_transfer import Uplink
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_speed import SpeedWish, serving_of
from fleet.plan_wish import PlanWish
from fleet.planner import plan
from fleet.prices import PriceTable

SECONDS = st.floats(min_value=0, max_value=1e4)
UPLINK = Uplink.of(hardware.instance("p5.48xlarge"))
LONG = PlanWish(input_tokens=32000, output_tokens=300, concurrency=16, engine_version="0.33.0")


def asked(wish):
    model = read_model(find("Qwen/Qwen3-32B").config, id="Qwen/Qwen3-32B")
    gpu = hardware.gpu("H100")
    return disaggregation(serving_of(model, ParallelPlan(tensor=2), gpu, wish), wish, UPLINK)


def shown(hardware_name="H100", model_id="Qwen/Qwen3-32B", speed=None, **change):
    model = read_model(find(model_id).config, id=model_id)
    wish = dataclasses.replace(LONG, gpu=hardware_name, tensor=2, **change)
    return plan(model, wish, speed=speed).to_document()["disaggregation"]


@given(prefill=SECONDS, decode=SECONDS)
def test_pools_are_whole_and_small(prefill, decode):
    for pool in pool_ratio(prefill, decode):
        assert 1 <= pool <= MAX_POOL


def ratio(found):
    return found.replicas.prefill / found.replicas.decode


@given(tokens=st.integers(min_value=4096, max_value=100_000), more=st.integers(min_value=1, max_value=100_000))
def test_longer_answers_never_take_fewer_decode_replicas_per_prefill_replica(tokens, more):
    short = asked(dataclasses.replace(LONG, input_tokens=tokens))
    long = asked(dataclasses.replace(LONG, input_tokens=tokens, output_tokens=300 + more))
    assert ratio(long) <= ratio(short)


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
    assert (found.pools, found.replicas) == (None, None)
    assert words in found.reason


def test_both_pools_stand_beside_the_same_gpus_colocated_under_the_same_load():
    found = shown()
    pools, together = found["pools"], found["colocated"]
    replicas = found["prefill_replicas"] + found["decode_replicas"]
    assert found["proposed"]
    assert (together["replicas"], together["gpus"], pools["gpus"]) == (replicas, 2 * replicas, 2 * replicas)
    assert pools["requests_in_flight"] == together["requests_in_flight"] == LONG.concurrency * replicas
    assert pools["latency"]["basis"] == "extrapolated"
    assert pools["latency"]["tpot_seconds"]["mid"] < together["latency"]["tpot_seconds"]["mid"]
    assert sum(pools["first_token_seconds"].values()) == pytest.approx(pools["latency"]["ttft_seconds"]["mid"])
    assert set(together["cost"]) < set(pools["cost"])


def test_the_cost_is_the_sum_of_both_pools_with_the_day_of_its_price():
    cost = shown()["pools"]["cost"]
    assert cost["usd_per_hour"] == cost["prefill_usd_per_hour"] + cost["decode_usd_per_hour"]
    assert (cost["priced_on"], cost["reason"]) == ("2026-Q1", None)
    found = shown()
    rate, per_million = (found["pools"][key] for key in ("throughput_tokens_per_second", "cost"))
    tokens_per_hour = rate["total"]["mid"] * 3600 / 1e6
    share = per_million["usd_per_hour_of_share"]
    assert per_million["usd_per_million_output_tokens"]["mid"] == pytest.approx(share / tokens_per_hour)


def test_a_figure_that_is_not_known_has_its_reason():
    unpriced = shown("H100", speed=SpeedWish(prices=PriceTable(retrieved="2030-01-01", prices=())))["pools"]["cost"]
    assert unpriced["usd_per_hour"] is None
    assert "no on-demand price of" in unpriced["reason"]
    nowhere = shown("A30")
    assert nowhere["pools"]["latency"]["ttft_seconds"] is None
    assert "no instance type with A30 is known" in nowhere["pools"]["latency"]["reasons"][-1]
    for side in ("pools", "colocated"):
        assert nowhere[side]["cost"]["usd_per_million_output_tokens"] is None
        assert nowhere[side]["cost"]["reason"] == "no instance type with A30 is known"
    assert set(nowhere["pools"]["cost"]) == set(shown()["pools"]["cost"])


def test_a_gpu_of_unknown_speed_gets_no_pools_and_says_which_rate_is_missing():
    found = shown("A10G")
    assert (found["proposed"], found["pools"], found["colocated"]) == (False, None, None)
    assert found["reason"].startswith("A10G: bf16_tflops is not known")


def test_windows_and_states_go_over_the_network_as_they_are_kept():
    found = shown(model_id="google/gemma-2-9b-it", input_tokens=8000)
    model = read_model(find("google/gemma-2-9b-it").config, id="google/gemma-2-9b-it")
    window = kv_sliding(model, "auto")
    kept = kv_bytes_per_token(model, "auto") * 8000 + window.bytes_per_token * window.window_tokens
    assert found["transfer_bytes_per_request"] == kept
