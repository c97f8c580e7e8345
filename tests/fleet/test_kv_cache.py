"""What is kept per token and per sequence: laws over published models, then single cases."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.kv_cache import (
    cross_bytes_per_sequence,
    indexer_bytes_per_token,
    kv_bytes_per_token,
    kv_bytes_per_token_of_rank,
    kv_sliding,
    sequence_bytes_of_rank,
    state_bytes_per_sequence,
)
from fleet.model import Missing
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan

CONFIGS = Path(__file__).resolve().parents[1] / "data" / "models" / "configs"
MODELS = {
    path.stem: read_model(json.loads(path.read_text(encoding="utf-8")), id=path.stem) for path in CONFIGS.glob("*.json")
}
KNOWN = sorted(name for name, model in MODELS.items() if model.lacks("kv") is None)
NAMES = st.sampled_from(KNOWN)
PLANS = st.builds(ParallelPlan, st.sampled_from([1, 2, 4, 8, 16]), st.integers(1, 6))


@given(name=NAMES, plan=PLANS, tokens=st.integers(0, 200_000), more=st.integers(0, 200_000))
def test_a_longer_sequence_never_takes_less(name, plan, tokens, more):
    model = MODELS[name]
    assert sequence_bytes_of_rank(model, plan, "bf16", tokens) <= sequence_bytes_of_rank(
        model, plan, "bf16", tokens + more
    )


@given(name=NAMES, plan=PLANS, tokens=st.integers(0, 200_000))
def test_fp8_takes_half_of_what_tokens_take_and_never_more(name, plan, tokens):
    model = MODELS[name]
    assert kv_bytes_per_token(model, "fp8") * 2 == kv_bytes_per_token(model, "bf16")
    assert sequence_bytes_of_rank(model, plan, "fp8", tokens) <= sequence_bytes_of_rank(model, plan, "bf16", tokens)


@given(name=NAMES, pipeline=st.integers(1, 6), tokens=st.integers(0, 100_000))
def test_a_rank_never_keeps_more_with_more_tensor_parallelism(name, pipeline, tokens):
    model = MODELS[name]
    plans = [ParallelPlan(tensor, pipeline) for tensor in (1, 2, 4, 8, 16, 32)]
    for sizes in (
        [kv_bytes_per_token_of_rank(model, plan, "bf16") for plan in plans],
        [sequence_bytes_of_rank(model, plan, "bf16", tokens) for plan in plans],
    ):
        assert sizes == sorted(sizes, reverse=True)


@given(name=NAMES, plan=PLANS)
def test_all_ranks_together_keep_every_token(name, plan):
    model = MODELS[name]
    assert kv_bytes_per_token_of_rank(model, plan, "bf16") * plan.gpus >= kv_bytes_per_token(model, "bf16")


@given(name=NAMES, tokens=st.integers(1, 1_000_000))
def test_one_gpu_keeps_tokens_windows_and_states(name, tokens):
    model = MODELS[name]
    sliding, indexer = kv_sliding(model, "bf16"), indexer_bytes_per_token(model) or 0
    windows = sliding.bytes_per_token * min(tokens, sliding.window_tokens) if sliding else 0
    fixed = (state_bytes_per_sequence(model) or 0) + (cross_bytes_per_sequence(model, "bf16") or 0)
    expected = tokens * (kv_bytes_per_token(model, "bf16") + indexer) + windows + fixed
    assert sequence_bytes_of_rank(model, ParallelPlan(), "bf16", tokens) == expected


def test_a_latent_stands_whole_on_every_rank_and_pipeline_stages_divide_it():
    model = MODELS["deepseek-ai--DeepSeek-V3"]
    assert {kv_bytes_per_token_of_rank(model, ParallelPlan(tensor), "bf16") for tensor in (1, 2, 8)} == {70_272}
    assert kv_bytes_per_token_of_rank(model, ParallelPlan(1, 4), "bf16") == 16 * 576 * 2


def test_heads_are_divided_until_each_rank_has_one():
    model = MODELS["meta-llama--Meta-Llama-3.1-70B"]
    per_rank = [kv_bytes_per_token_of_rank(model, ParallelPlan(tensor), "bf16") for tensor in (1, 2, 4, 8, 16)]
    assert per_rank == [327_680, 163_840, 81_920, 40_960, 40_960]


def test_whisper_keeps_the_encoders_positions_once_per_request():
    model = MODELS["openai--whisper-large-v3-turbo"]
    assert kv_bytes_per_token(model, "bf16") == 20_480
    assert cross_bytes_per_sequence(model, "bf16") == 20_480 * 1_500


def test_auto_is_the_dtype_that_the_checkpoint_brings_scales_for():
    model = MODELS["nvidia--Llama-3.1-70B-Instruct-FP8"]
    assert kv_bytes_per_token(model, "auto") == kv_bytes_per_token(model, "fp8")
    plain = MODELS["meta-llama--Meta-Llama-3.1-70B"]
    assert kv_bytes_per_token(plain, "auto") == kv_bytes_per_token(plain, "bf16")


def test_context_parallelism_divides_the_tokens():
    model = MODELS["meta-llama--Meta-Llama-3.1-8B"]
    whole, half = (sequence_bytes_of_rank(model, ParallelPlan(context=size), "bf16", 8_192) for size in (1, 2))
    assert whole == 2 * half


def test_a_model_with_full_attention_alone_has_no_windows_states_or_encoder():
    model = MODELS["meta-llama--Meta-Llama-3.1-8B"]
    assert kv_sliding(model) is None
    assert state_bytes_per_sequence(model) is None
    assert cross_bytes_per_sequence(model) is None
    assert indexer_bytes_per_token(model) is None


@pytest.mark.parametrize("figure", [kv_bytes_per_token, lambda m: kv_bytes_per_token_of_rank(m, ParallelPlan(2))])
def test_compressed_attention_has_no_figure_and_says_why(figure):
    unknown = figure(MODELS["deepseek-ai--DeepSeek-V4-Flash"])
    assert isinstance(unknown, Missing)
    assert unknown.key == "compress_ratios"


def test_states_are_those_of_the_published_layers():
    qwen = MODELS["Qwen--Qwen3.5-397B-A17B"]
    assert state_bytes_per_sequence(qwen) == 45 * (64 * 128 * 128 * 4 + (2 * 16 + 64) * 128 * 3 * 2)
