"""Batch settings and advice for mixtures of experts."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.batch_advice import active_share, all_to_all_bytes
from fleet.model import Experts
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_wish import PlanWish
from fleet.planner import plan

EXPERTS = st.integers(min_value=1, max_value=512).flatmap(
    lambda count: st.builds(
        Experts,
        count=st.just(count),
        active=st.integers(min_value=1, max_value=count),
        intermediate_size=st.just(1024),
        layers=st.integers(min_value=1, max_value=100),
    )
)


@cache
def model_named(model_id):
    return read_model(find(model_id).config, id=model_id)


def settings(model_id, wish):
    return {item["name"]: item for item in plan(model_named(model_id), wish).to_document()["batch"]}


@given(experts=EXPERTS, batch=st.integers(min_value=1, max_value=2000), more=st.integers(min_value=1, max_value=2000))
def test_more_tokens_never_wake_fewer_experts_and_one_wakes_its_own(experts, batch, more):
    assert active_share(experts, 1) == pytest.approx(experts.active / experts.count)
    assert active_share(experts, batch) <= active_share(experts, batch + more) <= 1


@given(experts=EXPERTS, hidden=st.integers(min_value=1, max_value=16384), ranks=st.integers(min_value=2, max_value=64))
def test_traffic_between_experts_grows_with_ranks_up_to_all_copies_both_ways(experts, hidden, ranks):
    sent = all_to_all_bytes(hidden, experts, ParallelPlan(tensor=ranks, expert=ranks))
    assert 0 < sent < 2 * experts.layers * experts.active * hidden * 2
    assert sent <= all_to_all_bytes(hidden, experts, ParallelPlan(tensor=ranks + 1, expert=ranks + 1))
    assert all_to_all_bytes(hidden, experts, ParallelPlan(tensor=ranks)) == 0


def test_every_setting_has_a_reason():
    found = settings("Qwen/Qwen3-32B", PlanWish(gpu="H100", gpus=8, context_tokens=16384, concurrency=16))
    assert set(found) >= {"max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size", "kv_cache_dtype"}
    assert set(found) >= {"graph_sizes", "enable_chunked_prefill", "speculative"}
    assert all(item["reason"] for item in found.values())
    assert found["max_model_len"]["value"] == 16384
    assert max(found["graph_sizes"]["value"]) <= found["max_num_seqs"]["value"]


def test_drafts_are_proposed_for_few_sequences_only():
    few = PlanWish(gpu="H200", gpus=8, context_tokens=8192, concurrency=2)
    assert settings("deepseek-ai/DeepSeek-V3", few)["speculative"]["value"] == "mtp"
    assert settings("Qwen/Qwen3-8B", few)["speculative"]["value"] == "ngram"
    many = PlanWish(gpu="H200", gpus=8, context_tokens=8192, concurrency=200)
    assert settings("deepseek-ai/DeepSeek-V3", many)["speculative"]["value"] == "none"


def test_experts_that_do_not_fit_could_lie_in_host_memory_at_a_price():
    wish = PlanWish(gpu="H100", gpus=1, tensor=1, context_tokens=4096, gpu_memory_utilization=0.8)
    advice = plan(model_named("openai/gpt-oss-120b"), wish).to_document()["experts"]
    assert advice["residency"] == "offload"
    assert "s a step over PCIe" in advice["residency_reason"]
    small = PlanWish(gpu="L4", gpus=1, tensor=1, context_tokens=4096, quantization="bf16")
    assert plan(model_named("deepseek-ai/DeepSeek-V3"), small).to_document()["experts"]["residency"] == "none"


def test_a_dense_model_has_no_advice_on_experts():
    assert plan(model_named("Qwen/Qwen3-8B"), PlanWish(gpu="L4", gpus=1)).to_document()["experts"] is None
