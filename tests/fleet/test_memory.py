"""Memory of a start-up: laws over models, plans and GPUs, then measured start-ups."""

import dataclasses
import importlib
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.hardware import BYTES_PER_GIB
from fleet.memory import memory_of
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import figures_of
from fleet.plan_wish import LoraWish, PlanWish
from fleet.planner import plan

ROOT = Path(__file__).resolve().parents[2]
IDS = (
    "Qwen/Qwen3-8B",
    "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-V3",
    "openai/gpt-oss-20b",
    "google/gemma-2-9b-it",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "openai/whisper-large-v3-turbo",
    "llava-hf/llava-1.5-7b-hf",
    "ai21labs/Jamba-v0.1",
)
ENGINES = st.sampled_from(("vllm", "sglang", "tensorrt-llm"))
GPUS = st.sampled_from(("L4", "A10G", "L40S", "A100-40", "A100-80", "H100", "H200", "B200", "B300", "GB200", "RTX5090"))
PLANS = st.builds(
    lambda tensor, pipeline, data, spread: ParallelPlan(tensor, pipeline, data, tensor * data if spread else 0),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from((1, 2, 3, 4)),
    st.sampled_from((1, 2)),
    st.booleans(),
)


@cache
def model_named(model_id):
    known = find(model_id)
    return read_model(known.config, id=model_id)


MODELS = st.sampled_from(IDS).map(model_named)
WISHES = st.builds(
    PlanWish,
    engine=ENGINES,
    engine_version=st.sampled_from((None, "0.11.0", "0.19.0", "0.33.0", "nightly-dev")),
    context_tokens=st.integers(min_value=1, max_value=200_000),
    concurrency=st.integers(min_value=1, max_value=4096),
    gpu_memory_utilization=st.one_of(st.none(), st.floats(min_value=0.3, max_value=1.0)),
    max_num_seqs=st.one_of(st.none(), st.integers(min_value=1, max_value=2048)),
    max_num_batched_tokens=st.one_of(st.none(), st.integers(min_value=64, max_value=65536)),
)


@given(model=MODELS, item=PLANS, gpu=GPUS.map(hardware.gpu), wish=WISHES)
def test_the_five_parts_sum_to_the_visible_memory_where_the_plan_fits(model, item, gpu, wish):
    memory = memory_of(model, item, gpu, wish)
    parts = (memory.weights, memory.kv_cache, memory.activation, memory.overhead, memory.free)
    if memory.fits:
        assert sum(parts) == memory.visible == gpu.memory_bytes
        assert min(parts) >= 0


@given(model=MODELS, item=PLANS, gpu=GPUS.map(hardware.gpu), wish=WISHES)
def test_lower_precision_never_needs_more_bytes_at_one_plan(model, item, gpu, wish):
    weights = [
        memory_of(model, item, gpu, dataclasses.replace(wish, quantization=name)).weights
        for name in ("bf16", "fp8", "int4")
    ]
    assert weights == sorted(weights, reverse=True)


@given(model=MODELS, item=PLANS, wish=WISHES, more=st.integers(min_value=1, max_value=100_000))
def test_the_cache_that_a_sequence_needs_grows_with_its_context(model, item, wish, more):
    gpu = hardware.gpu("H100")
    longer = dataclasses.replace(wish, context_tokens=wish.context_tokens + more)
    short, long = (memory_of(model, item, gpu, asked) for asked in (wish, longer))
    assert long.sequence_bytes >= short.sequence_bytes
    assert long.kv_cache == short.kv_cache


@given(model=MODELS, item=PLANS, wish=WISHES)
def test_an_fp8_cache_never_holds_fewer_sequences(model, item, wish):
    gpu = hardware.gpu("H200")
    wide, narrow = (memory_of(model, item, gpu, dataclasses.replace(wish, kv_dtype=dtype)) for dtype in ("bf16", "fp8"))
    assert narrow.sequences >= wide.sequences


@given(model=MODELS, wish=WISHES, shares=st.lists(st.floats(min_value=0.05, max_value=0.6), max_size=3))
def test_engines_on_one_gpu_never_add_up_to_more_than_the_gpu(model, wish, shares):
    gpu = hardware.gpu("B300")
    beside = dataclasses.replace(wish, engine="vllm", neighbours=tuple(shares))
    memory = memory_of(model, ParallelPlan(), gpu, beside)
    if memory.fits:
        assert memory.settings.utilization + sum(shares) < 1


@given(adapters=st.integers(min_value=1, max_value=64), rank=st.sampled_from((8, 16, 64)))
def test_adapters_and_a_draft_model_take_weights_away_from_the_cache(adapters, rank):
    model, gpu, item = model_named("Qwen/Qwen3-8B"), hardware.gpu("H100"), ParallelPlan(tensor=2)
    plain = memory_of(model, item, gpu, PlanWish())
    adapted = memory_of(model, item, gpu, PlanWish(lora=LoraWish(adapters, rank)))
    drafted = memory_of(model, item, gpu, PlanWish(draft=model_named("openai/gpt-oss-20b")))
    assert adapted.weights - plain.weights == plain.kv_cache - adapted.kv_cache > 0
    assert drafted.weights > plain.weights
    assert drafted.sequence_bytes > plain.sequence_bytes


def test_adapters_take_rank_times_both_sides_of_every_adapted_matrix():
    model = model_named("Qwen/Qwen3-8B")
    wish = PlanWish(lora=LoraWish(adapters=1, rank=16))
    gpu = hardware.gpu("H100")
    difference = (
        memory_of(model, ParallelPlan(), gpu, wish).weights - memory_of(model, ParallelPlan(), gpu, PlanWish()).weights
    )
    hidden, wide, kv = 4096, 12288, 1024
    per_layer = 2 * (hidden + hidden) + 2 * (hidden + kv) + 3 * (hidden + wide)
    assert difference == 36 * per_layer * 16 * 2


def test_a_latent_cache_is_copied_by_tensor_parallelism_and_kept_once_by_data_parallelism():
    model, gpu = model_named("deepseek-ai/DeepSeek-V3"), hardware.gpu("H200")
    copied = memory_of(model, ParallelPlan(tensor=8, expert=8), gpu, PlanWish(concurrency=64))
    once = memory_of(model, ParallelPlan(data=8, expert=8), gpu, PlanWish(concurrency=64))
    assert copied.sequence_bytes == once.sequence_bytes
    assert once.sequences_wanted * 8 == copied.sequences_wanted == 64
    assert once.sequences > 4 * copied.sequences


def test_experts_of_mxfp4_are_padded_when_they_are_loaded():
    loaded = {"openai/gpt-oss-120b": 64.38, "openai/gpt-oss-20b": 13.47}
    for model_id, measured in loaded.items():
        weights = figures_of(model_named(model_id), "mxfp4", "auto").rank_weights(ParallelPlan())
        assert weights / BYTES_PER_GIB == pytest.approx(measured, abs=0.25)


def test_no_slice_of_a_gpu_holds_more_than_its_share():
    gpu = hardware.gpu("H100")
    assert gpu.slice_bytes("3g.40gb") == gpu.memory_bytes // 2
    assert gpu.slice_bytes("5g.60gb") is None
    assert hardware.gpu("L4").slice_bytes("1g.10gb") is None


@pytest.fixture
def measured(monkeypatch):
    """What others measured, as the benchmark reads it."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("planner_facts")


def test_measured_start_ups_come_out_within_one_gibibyte(measured, capsys):
    facts = measured.facts_at_hand(is_copied=True)
    logged = [row for row in facts.start_ups if row["kv_gib_per_gpu"]]
    beyond = []
    for row in logged:
        ours = plan(facts.model(row), measured.start_up_wish(row)).memory.kv_cache / BYTES_PER_GIB
        error = ours - max(0.0, float(row["kv_gib_per_gpu"]))
        if abs(error) > 1:
            beyond.append((row["model"], round(error, 2)))
    with capsys.disabled():
        sys.stdout.write(f"\nmemory: {len(logged)} start-ups, {len(logged) - len(beyond)} within 1 GiB\n")
    assert len(logged) >= 4
    assert not beyond
