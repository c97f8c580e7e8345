"""The planner: laws over models, GPUs and wishes, then the answer's contract and examples."""

import dataclasses
import json
import math
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet import hardware
from fleet.hardware import SharingMode, UnknownHardware
from fleet.model_catalogue import find, known_ids
from fleet.model_reading import read_model
from fleet.plan_figures import figures_of
from fleet.plan_search import Field, enumerate_plans, field_of
from fleet.plan_wish import PlanWish, WishError
from fleet.planner import plan, smallest_gpus

KEYS = {
    "model",
    "weights_bytes_total",
    "kv_bytes_per_token",
    "kv_sliding",
    "state_bytes_per_sequence",
    "per_gpu",
    "kv_tokens",
    "fits",
    "reasons",
    "parallel",
    "alternatives",
    "latency",
    "throughput_tokens_per_second",
    "cold_start_seconds",
    "cost",
}
IDS = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-30B-A3B",
    "meta-llama/Llama-3.1-70B",
    "deepseek-ai/DeepSeek-V3",
    "openai/gpt-oss-120b",
    "google/gemma-2-9b-it",
    "deepseek-ai/DeepSeek-V4-Flash",
    "openai/whisper-large-v3-turbo",
)
GPUS = st.sampled_from(("L4", "L40S", "A100-80", "H100", "H200", "B200", "GB200"))
WISHES = st.builds(
    PlanWish,
    gpu=GPUS,
    gpus=st.integers(min_value=1, max_value=40),
    engine=st.sampled_from(("vllm", "sglang", "tensorrt-llm")),
    engine_version=st.sampled_from((None, "0.19.0", "1.2.0rc6")),
    context_tokens=st.integers(min_value=1, max_value=200_000),
    concurrency=st.integers(min_value=1, max_value=512),
    quantization=st.sampled_from((None, "bf16", "fp8", "int4")),
    kv_dtype=st.sampled_from(("auto", "bf16", "fp8")),
)


@cache
def model_named(model_id):
    return read_model(find(model_id).config, id=model_id)


def explicit(wish, item):
    sizes = {"tensor": item.tensor, "pipeline": item.pipeline, "data": item.data, "expert": item.expert}
    return dataclasses.replace(wish, **sizes, context_parallel=item.context)


@given(model_id=st.sampled_from(IDS), wish=WISHES)
@settings(max_examples=60, deadline=None)
def test_a_proposed_plan_judged_again_fits(model_id, wish):
    model = model_named(model_id)
    answer = plan(model, wish)
    if answer.fits == "yes":
        again = plan(model, explicit(wish, answer.plan))
        assert again.fits == "yes"
        assert again.memory == answer.memory
        assert answer.plan.gpus <= wish.gpus
        assert not answer.reasons


@given(model_id=st.sampled_from(IDS), wish=WISHES, more=st.integers(min_value=1, max_value=40))
@settings(max_examples=60, deadline=None)
def test_the_smallest_number_of_gpus_never_grows_with_more_offered(model_id, wish, more):
    model = model_named(model_id)
    few = smallest_gpus(model, wish)
    many = smallest_gpus(model, dataclasses.replace(wish, gpus=wish.gpus + more))
    if few is not None:
        assert many is not None
        assert many <= few


@given(model_id=st.sampled_from(known_ids()), wish=WISHES)
@settings(max_examples=60, deadline=None)
def test_every_answer_is_plain_json_with_every_documented_key(model_id, wish):
    document = plan(model_named(model_id), wish).to_document()
    json.dumps(document, allow_nan=False)
    assert document.keys() >= KEYS
    assert document["fits"] in {"yes", "no", "unknown"}
    assert (document["fits"] == "no") == bool(document["reasons"])
    assert set(document["parallel"]) >= {"tp", "pp", "ep", "dp"}
    if document["fits"] == "unknown":
        assert document["missing"]
    if document["fits"] == "yes":
        assert sum(document["per_gpu"].values()) == document["hardware"]["visible_bytes"]


@given(model_id=st.sampled_from(IDS), wish=WISHES)
@settings(max_examples=40, deadline=None)
def test_what_a_counterfactual_promises_holds(model_id, wish):
    model = model_named(model_id)
    for change in plan(model, wish).counterfactuals:
        key = {"context": "context_tokens", "kv-dtype": "kv_dtype"}.get(change.change, change.change)
        assert plan(model, dataclasses.replace(wish, **{key: change.value})).fits == "yes", change


@given(gpus=st.integers(min_value=1, max_value=64), more=st.integers(min_value=0, max_value=64))
def test_a_larger_offer_has_every_count_of_a_smaller_one(gpus, more):
    small, large = Field(gpus, 8, 8), Field(gpus + more, 8, 8)
    assert set(small.counts) <= set(large.counts)
    assert all(count <= gpus for count in small.counts)


@given(model_id=st.sampled_from(IDS), wish=WISHES)
@settings(max_examples=40, deadline=None)
def test_tensor_parallelism_stays_inside_the_fast_links(model_id, wish):
    gpu = hardware.gpu(wish.gpu)
    figures, field = figures_of(model_named(model_id), None, "auto"), field_of(gpu, wish)
    for gpus in field.counts:
        for item in enumerate_plans(figures, wish, gpus, field):
            assert item.gpus == gpus
            assert item.tensor <= field.domain
            assert item.expert in (0, item.stage_ranks)


def test_one_model_on_several_gpus_takes_the_fewest():
    wish = PlanWish(gpu="H100", gpus=8, engine_version="0.19.0", context_tokens=16000)
    answer = plan(model_named("meta-llama/Llama-3.1-70B"), wish)
    assert (answer.fits, answer.plan.tensor, answer.nodes) == ("yes", 4, 1)
    assert any("EFA is not needed" in note for note in answer.notes)


def test_a_model_beyond_a_node_is_piped_over_nodes_and_needs_efa():
    answer = plan(model_named("meta-llama/Meta-Llama-3.1-405B"), PlanWish(gpu="H100", context_tokens=8192))
    assert (answer.plan.tensor, answer.plan.pipeline, answer.nodes) == (8, 2, 2)
    assert any("EFA" in note for note in answer.notes)


def test_a_miss_says_what_it_needs_and_what_would_do():
    answer = plan(model_named("openai/gpt-oss-120b"), PlanWish(gpu="L4", gpus=1, context_tokens=4096))
    assert answer.fits == "no"
    assert [reason.rule for reason in answer.reasons] == ["memory"]
    assert "needs 64.6 GiB of weights" in answer.reasons[0].message
    assert "22.4 GiB visible" in answer.reasons[0].message
    assert [(change.change, change.value) for change in answer.counterfactuals] == [("gpus", 4)]


def test_graphs_must_have_room_outside_the_budget():
    tight = PlanWish(gpu="L4", gpus=1, gpu_memory_utilization=0.99, context_tokens=1024, quantization="fp8")
    answer = plan(model_named("Qwen/Qwen3-8B"), tight)
    assert "dies in graph capture" in answer.reasons[0].message
    assert plan(model_named("Qwen/Qwen3-8B"), dataclasses.replace(tight, enforce_eager=True)).fits == "yes"


def test_a_slice_takes_one_rank_only():
    wish = PlanWish(gpu="H100", sharing=SharingMode.MIG, mig_profile="1g.10gb", context_tokens=4096)
    assert plan(model_named("Qwen/Qwen3-8B"), wish).fits == "no"
    assert plan(model_named("Qwen/Qwen3-0.6B"), wish).fits == "yes"
    two = plan(model_named("Qwen/Qwen3-0.6B"), dataclasses.replace(wish, tensor=2))
    assert [reason.rule for reason in two.reasons] == ["mig"]


def test_a_slice_is_a_slice_whatever_sharing_says():
    two = plan(model_named("Qwen/Qwen3-0.6B"), PlanWish(gpu="H100", mig_profile="3g.40gb", tensor=2))
    assert (two.fits, [reason.rule for reason in two.reasons]) == ("no", ["mig"])


def test_a_slice_that_no_gpu_has_can_not_be_read():
    with pytest.raises(WishError) as refused:
        plan(model_named("Qwen/Qwen3-0.6B"), PlanWish(gpu="H100", mig_profile="9g"))
    assert str(refused.value).startswith("mig_profile is '9g'")
    assert "3g.40gb" in str(refused.value)


@pytest.mark.parametrize(("gpu", "profile"), [("L4", "1g.10gb"), ("H100", "1g.18gb")])
def test_a_slice_of_another_gpu_is_a_plan_that_can_not_be(gpu, profile):
    answer = plan(model_named("Qwen/Qwen3-0.6B"), PlanWish(gpu=gpu, mig_profile=profile))
    assert answer.fits == "no"
    assert "mig" in [reason.rule for reason in answer.reasons]
    assert gpu in next(reason.message for reason in answer.reasons if reason.rule == "mig")


@pytest.mark.parametrize("wish", [{"gpus": 10**9}, {"pipeline": 10**9}, {"tensor": 10**9, "data": 10**9}])
def test_absurd_sizes_cost_no_more_time_than_others(wish):
    model = model_named("Qwen/Qwen3-8B")
    answer = plan(model, PlanWish(gpu="H100", **wish))
    assert answer.smallest_gpus == 1
    assert answer.fits == ("yes" if "gpus" in wish else "no")
    assert len(field_of(answer.gpu, answer.wish).counts) < 100


def test_fewer_in_flight_are_named_as_the_data_parallel_ranks_hold_them():
    wish = PlanWish(gpu="B200", gpus=12, engine_version="0.19.0", concurrency=1000, quantization="fp8")
    model = model_named("zai-org/GLM-5-FP8")
    (fewer,) = (change for change in plan(model, wish).counterfactuals if change.change == "concurrency")
    assert plan(model, dataclasses.replace(wish, concurrency=fewer.value)).fits == "yes"


def test_a_context_above_the_models_own_is_refused():
    answer = plan(model_named("google/gemma-2-9b-it"), PlanWish(gpu="H100", context_tokens=8193))
    assert [reason.rule for reason in answer.reasons] == ["context-length"]


def test_a_latent_cache_with_many_sequences_gets_data_parallel_attention():
    model = model_named("deepseek-ai/DeepSeek-V3")
    many = plan(model, PlanWish(gpu="H200", gpus=8, context_tokens=8192, concurrency=256))
    assert (many.plan.data, many.plan.expert) == (8, 8)
    few = plan(model, PlanWish(gpu="H200", gpus=8, context_tokens=8192))
    assert (few.plan.tensor, few.plan.data) == (8, 1)


def test_batches_of_a_mixture_gain_little_then_much_then_little():
    document = plan(model_named("Qwen/Qwen3-30B-A3B"), PlanWish(gpu="H100", gpus=1, context_tokens=16384)).to_document()
    gains = [row["gain_of_doubling"] for row in document["experts"]["batches"]]
    best = gains.index(max(gains))
    assert gains[0] < gains[best] > gains[-1]
    assert 0 < best < len(gains) - 1
    assert document["experts"]["batches"][0]["active_expert_share"] == pytest.approx(8 / 128, abs=1e-4)


def test_the_largest_context_holds_and_one_more_token_does_not():
    model = model_named("Qwen/Qwen3-32B")
    wish = PlanWish(gpu="H100", gpus=1, tensor=1, context_tokens=4096, concurrency=2)
    longest = plan(model, wish).largest_context
    assert plan(model, dataclasses.replace(wish, context_tokens=longest)).fits == "yes"
    assert plan(model, dataclasses.replace(wish, context_tokens=longest + 1)).fits == "no"


def test_more_gpus_than_offered_is_a_reason():
    answer = plan(model_named("Qwen/Qwen3-8B"), PlanWish(gpu="H100", gpus=2, tensor=4))
    assert answer.fits == "no"
    assert answer.reasons[0].rule == "gpus"


def test_an_instance_says_gpu_and_node():
    answer = plan(model_named("Qwen/Qwen3-8B"), PlanWish(instance="g6.12xlarge", context_tokens=8192))
    assert (answer.gpu.name, answer.fits) == ("L4", "yes")
    assert answer.to_document()["cost"]["instance_type"] == "g6.12xlarge"
    with pytest.raises(WishError, match=r"g6\.12xlarge carries L4, not H100"):
        plan(model_named("Qwen/Qwen3-8B"), PlanWish(instance="g6.12xlarge", gpu="H100"))
    with pytest.raises(UnknownHardware, match="did you mean 'H100'"):
        plan(model_named("Qwen/Qwen3-8B"), PlanWish(gpu="H1000"))


def test_the_answer_of_a_long_prompt_has_pools():
    wish = PlanWish(gpu="H100", gpus=8, input_tokens=16000, output_tokens=200, concurrency=8, engine_version="0.33.0")
    pools = plan(model_named("Qwen/Qwen3-32B"), wish).to_document()["disaggregation"]
    assert pools["proposed"]
    assert pools["prefill_replicas"] >= 1 <= pools["decode_replicas"]
    assert pools["transfer_bytes_per_request"] == 16000 * 262144
    closed = plan(model_named("Qwen/Qwen3-32B"), dataclasses.replace(wish, closed_paths=frozenset({"disaggregation"})))
    assert "closed by advisories" in closed.to_document()["disaggregation"]["reason"]


def test_no_number_is_infinite_or_undefined():
    answer = plan(model_named("openai/whisper-large-v3-turbo"), PlanWish(gpu="L4", gpus=1))

    def numbers(value):
        if isinstance(value, dict):
            for item in value.values():
                yield from numbers(item)
        elif isinstance(value, list):
            for item in value:
                yield from numbers(item)
        elif isinstance(value, float):
            yield value

    assert all(math.isfinite(number) for number in numbers(answer.to_document()))


def test_without_hardware_the_cheapest_that_fits_is_proposed():
    small = plan(model_named("Qwen/Qwen3-8B"), PlanWish(context_tokens=8192, quantization="fp8"))
    assert (small.gpu.name, small.fits, small.plan.gpus) == ("L4", "yes", 1)
    assert "no GPU was given" in small.notes[0]
    large = plan(model_named("deepseek-ai/DeepSeek-V3"), PlanWish(context_tokens=8192))
    assert large.fits == "yes"
    assert large.gpu.compute_capability >= (8, 0)


def test_a_cache_of_few_blocks_gets_no_tier():
    answer = plan(model_named("Qwen/Qwen3-8B"), PlanWish(gpu="H100", gpus=1, working_set_tokens=10_000))
    assert not any(tier["pays"] for tier in answer.to_document()["kv_tiers"])


def test_a_gpu_without_slices_is_not_shared_by_them():
    wish = PlanWish(gpu="L4", gpus=1, sharing=SharingMode.MIG)
    answer = plan(model_named("Qwen/Qwen3-0.6B"), wish)
    assert answer.fits == "no"
    assert [reason.rule for reason in answer.reasons] == ["mig"]
    assert plan(model_named("Qwen/Qwen3-0.6B"), dataclasses.replace(wish, gpu="H100")).fits == "yes"
