"""Weights of whole models and of the fullest GPU: laws over published models, then single cases."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.tensors import Part
from fleet.weights import (
    bytes_by_part,
    encoding_of,
    layers_of_stages,
    parameters_active,
    parameters_total,
    weights_bytes_of_rank,
    weights_bytes_total,
)

CONFIGS = Path(__file__).resolve().parents[1] / "data" / "models" / "configs"
MODELS = {
    path.stem: read_model(json.loads(path.read_text(encoding="utf-8")), id=path.stem) for path in CONFIGS.glob("*.json")
}
KNOWN = sorted(name for name, model in MODELS.items() if model.lacks("weights") is None)
NAMES = st.sampled_from(KNOWN)
QUANTIZATIONS = st.sampled_from([None, "bf16", "fp8", "int8", "awq", "gptq", "int4", "mxfp4", "nvfp4", "nf4"])
DOWN = ("bf16", "fp8", "nvfp4")


def without_mtp(name: str, quantization: str | None) -> int:
    return sum(size for part, size in bytes_by_part(MODELS[name], quantization).items() if part is not Part.MTP)


@pytest.mark.parametrize("name", KNOWN)
def test_lower_precision_never_needs_more(name):
    sizes = [weights_bytes_total(MODELS[name], quantization) for quantization in DOWN]
    assert sizes == sorted(sizes, reverse=True)
    for four_bits in ("awq", "gptq", "int4", "mxfp4", "nf4"):
        assert weights_bytes_total(MODELS[name], four_bits) <= weights_bytes_total(MODELS[name], "fp8-channel")


@given(name=NAMES, quantization=QUANTIZATIONS, pipeline=st.integers(1, 4), data=st.sampled_from([1, 2, 4]))
def test_a_rank_never_holds_more_with_more_tensor_parallelism(name, quantization, pipeline, data):
    sizes = [
        weights_bytes_of_rank(MODELS[name], ParallelPlan(tensor, pipeline, data), quantization)
        for tensor in (1, 2, 4, 8, 16)
    ]
    assert sizes == sorted(sizes, reverse=True)


@given(name=NAMES, quantization=QUANTIZATIONS, tensor=st.integers(1, 16), pipeline=st.integers(1, 8))
def test_all_ranks_together_hold_the_whole_model(name, quantization, tensor, pipeline):
    fullest = weights_bytes_of_rank(MODELS[name], ParallelPlan(tensor, pipeline), quantization)
    assert fullest * tensor * pipeline >= without_mtp(name, quantization)


@given(name=NAMES, quantization=QUANTIZATIONS)
def test_one_gpu_holds_everything_but_what_it_does_not_load(name, quantization):
    alone = weights_bytes_of_rank(MODELS[name], ParallelPlan(), quantization)
    padding = 0.002
    assert without_mtp(name, quantization) <= alone <= without_mtp(name, quantization) * (1 + padding) + 1
    drafting = weights_bytes_of_rank(MODELS[name], ParallelPlan(), quantization, with_mtp=True)
    assert drafting >= weights_bytes_total(MODELS[name], quantization)


@given(name=NAMES, tensor=st.sampled_from([1, 2, 4]), data=st.sampled_from([1, 2, 4, 8]))
def test_whole_experts_on_each_rank_need_about_as_much_as_split_ones(name, tensor, data):
    model = MODELS[name]
    split = weights_bytes_of_rank(model, ParallelPlan(tensor, data=data))
    whole = weights_bytes_of_rank(model, ParallelPlan(tensor, data=data, expert=tensor * data))
    assert whole >= split
    if model.experts and model.experts.count % (tensor * data) == 0:
        assert whole == pytest.approx(split, rel=1e-6)


@given(layers=st.integers(1, 200), stages=st.integers(1, 32))
def test_layers_go_to_stages_as_evenly_as_they_can(layers, stages):
    counts = layers_of_stages(layers, stages)
    assert sum(counts) == layers
    assert len(counts) == stages
    assert max(counts) - min(counts) <= 1


def test_an_uneven_rest_goes_to_the_stages_before_the_last():
    assert layers_of_stages(61, 4) == (15, 15, 16, 15)
    assert layers_of_stages(62, 4) == (15, 16, 16, 15)


def test_parts_sum_up_and_active_parameters_are_fewer_only_with_experts():
    for name in KNOWN:
        model = MODELS[name]
        assert sum(bytes_by_part(model).values()) == weights_bytes_total(model)
        assert (parameters_active(model) < parameters_total(model)) is (model.experts is not None)


def test_fewer_kv_heads_than_ranks_are_copied():
    model = MODELS["Qwen--Qwen3-30B-A3B"]
    layers = [layer.tensors for layer in model.layers]
    keys = sum(one.parameters for tensors in layers for one in tensors if one.module.endswith(("k_proj", "v_proj")))
    four, eight = (weights_bytes_of_rank(model, ParallelPlan(tensor), "bf16") for tensor in (4, 8))
    divided = weights_bytes_of_rank(model, ParallelPlan(4), "bf16") / 2
    assert eight - divided >= keys * 2 / 8
    assert eight < four


def test_a_dense_model_is_copied_by_data_parallelism_and_experts_are_shared():
    dense, mixture = MODELS["Qwen--Qwen3-32B"], MODELS["deepseek-ai--DeepSeek-V3"]
    assert weights_bytes_of_rank(dense, ParallelPlan(data=8)) == weights_bytes_of_rank(dense, ParallelPlan())
    assert weights_bytes_of_rank(mixture, ParallelPlan(data=8)) < weights_bytes_of_rank(mixture, ParallelPlan()) / 4


@pytest.mark.parametrize(
    ("name", "quantization", "module", "expected"),
    [
        ("openai--gpt-oss-120b", "mxfp4", "self_attn.q_proj", "bf16"),
        ("openai--gpt-oss-120b", "mxfp4", "experts.*.up_proj", "mxfp4"),
        ("Qwen--Qwen3-32B", "mxfp4", "mlp.up_proj", "mxfp4"),
        ("Qwen--Qwen3.5-397B-A17B", "gptq", "linear_attn.in_proj_qkv", "bf16"),
        ("Qwen--Qwen3-30B-A3B", "gptq", "self_attn.q_proj", "gptq"),
        ("deepseek-ai--DeepSeek-V3", "nvfp4", "self_attn.kv_b_proj", "bf16"),
        ("deepseek-ai--DeepSeek-V3", "nvfp4", "self_attn.o_proj", "nvfp4"),
        ("deepseek-ai--DeepSeek-V3", "nvfp4", "shared_experts.up_proj", "nvfp4"),
        ("Qwen--Qwen3-30B-A3B", "fp8", "mlp.gate", "bf16"),
        ("Qwen--Qwen3-30B-A3B", "fp8", "lm_head", "bf16"),
    ],
)
def test_each_scheme_takes_the_modules_that_published_checkpoints_give_it(name, quantization, module, expected):
    model = MODELS[name]
    tensors = (one for one in model.all_tensors if one.part is not Part.MTP)
    tensor = next(one for one in tensors if one.module.endswith(module))
    assert encoding_of(tensor, model, quantization).name == expected
