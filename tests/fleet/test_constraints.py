"""Constraints of parallel plans: laws, then the known failures with their rules."""

import csv
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.constraints import violations
from fleet.hardware import SharingMode
from fleet.model_catalogue import find, known_ids
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan

DATA = Path(__file__).parents[1] / "data" / "placements"
SIZES = (1, 2, 4, 8, 16, 32)
HEADS = {"heads-divisible", "kv-heads-divisible"}


@cache
def model_named(model_id):
    return read_model(find(model_id).config, id=model_id)


def rules(model_id, item, *, gpu="B300", engine="vllm", version=None, quantization=None, sharing=None):
    found = violations(
        model_named(model_id),
        item,
        hardware.gpu(gpu),
        engine,
        version,
        quantization,
        sharing or SharingMode.EXCLUSIVE,
    )
    return {reason.rule for reason in found}


@given(model_id=st.sampled_from(known_ids()))
def test_one_gpu_of_the_newest_kind_breaks_no_division(model_id):
    assert not rules(model_id, ParallelPlan())


@given(model_id=st.sampled_from(known_ids()), stages=st.integers(min_value=2, max_value=4))
def test_pipeline_stages_need_no_divisor(model_id, stages):
    assert not rules(model_id, ParallelPlan(pipeline=stages))


@given(
    model_id=st.sampled_from(known_ids()),
    tensor=st.integers(min_value=2, max_value=64),
    quantization=st.sampled_from((None, "bf16", "fp8", "int4", "awq")),
)
def test_every_reason_carries_its_numbers(model_id, tensor, quantization):
    found = violations(
        model_named(model_id), ParallelPlan(tensor=tensor), hardware.gpu("B300"), "vllm", None, quantization
    )
    for reason in found:
        assert reason.evidence
        assert all(str(value) in reason.message for key, value in reason.evidence.items() if key == "tensor")


@given(model_id=st.sampled_from(known_ids()), ranks=st.integers(min_value=2, max_value=16))
def test_nothing_spans_slices_of_gpus(model_id, ranks):
    for item in (ParallelPlan(tensor=ranks), ParallelPlan(pipeline=ranks), ParallelPlan(data=ranks)):
        assert "mig" in rules(model_id, item, sharing=SharingMode.MIG)
    assert "mig" not in rules(model_id, ParallelPlan(), sharing=SharingMode.MIG)


@pytest.mark.parametrize(
    ("gpu", "engines"), [("A100-80", {"vllm", "sglang"}), ("A10G", {"vllm", "sglang"}), ("L40S", None)]
)
def test_fp8_below_8_9_is_unpacked_by_engines_that_can(gpu, engines):
    known = {"vllm", "sglang", "tensorrt-llm"}
    able = {
        engine
        for engine in known
        if not rules("Qwen/Qwen3-8B", ParallelPlan(), gpu=gpu, engine=engine, quantization="fp8")
    }
    assert able == (engines or known)


def test_tensor_parallel_sizes_come_out_as_vllm_accepts_them(capsys):
    wrong = []
    with (DATA / "divisions.csv").open(encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    for row in rows:
        accepted = [size for size in SIZES if not rules(row["model"], ParallelPlan(tensor=size)) & HEADS]
        if accepted != [int(size) for size in row["valid_tp_vllm"].split()]:
            wrong.append(row["model"])
    with capsys.disabled():
        sys.stdout.write(f"\ntensor-parallel sizes: {len(rows)} models, {len(rows) - len(wrong)} as expected\n")
    assert not wrong


def test_fp8_blocks_of_experts_break_where_they_do(capsys):
    with (DATA / "divisions.csv").open(encoding="utf-8") as text:
        rows = [row for row in csv.DictReader(text) if row["experts"]]
    for row in rows:
        valid = [int(size) for size in row["valid_tp_vllm"].split()]
        broken = [size for size in valid if "fp8-block" in rules(row["model"], ParallelPlan(tensor=size))]
        assert broken == [int(size) for size in row["fp8_block_tp_invalid_without_ep"].split()], row["model"]
    with capsys.disabled():
        sys.stdout.write(f"\nfp8 blocks: {len(rows)} mixtures of experts as expected\n")


def test_an_fp8_block_of_a_dense_ffn_breaks_too():
    """25600 / 16 = 1600 is no multiple of 128."""
    assert "fp8-block" not in rules("Qwen/Qwen3-32B-FP8", ParallelPlan(tensor=8))
    assert "fp8-block" in rules("Qwen/Qwen3-32B-FP8", ParallelPlan(tensor=16))


def test_expert_parallelism_cures_the_block():
    for item in (ParallelPlan(tensor=8, expert=8), ParallelPlan(data=8, expert=8)):
        assert not rules("Qwen/Qwen3-235B-A22B-FP8", item)
    assert rules("Qwen/Qwen3-235B-A22B-FP8", ParallelPlan(tensor=8)) == {"fp8-block"}


@pytest.mark.parametrize(
    ("model_id", "item", "wish", "rule"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", ParallelPlan(tensor=8), {}, "heads-divisible"),
        ("Qwen/Qwen3-30B-A3B", ParallelPlan(tensor=4), {"quantization": "awq"}, "quantisation-group"),
        ("Qwen/Qwen3-30B-A3B", ParallelPlan(data=3, expert=3), {}, "experts-divisible"),
        ("Qwen/Qwen3-8B", ParallelPlan(tensor=2, expert=2), {}, "experts-divisible"),
        ("Qwen/Qwen3-8B", ParallelPlan(), {"gpu": "H100", "quantization": "nvfp4"}, "compute-capability"),
        ("zai-org/GLM-5-FP8", ParallelPlan(tensor=8), {"gpu": "A100-80"}, "compute-capability"),
        ("deepseek-ai/DeepSeek-V4-Flash", ParallelPlan(tensor=8), {"gpu": "A100-80"}, "compute-capability"),
        ("Qwen/Qwen3-30B-A3B", ParallelPlan(tensor=4, expert=2), {}, "engine-limit"),
        ("Qwen/Qwen3-8B", ParallelPlan(pipeline=2), {"engine": "lmdeploy"}, "engine-limit"),
        ("Qwen/Qwen3-8B", ParallelPlan(pipeline=2), {"engine": "sglang", "version": "0.4.3"}, "engine-limit"),
        ("Qwen/Qwen3-8B", ParallelPlan(tensor=2, context=2), {"engine": "sglang"}, "engine-limit"),
        ("Qwen/Qwen3-8B", ParallelPlan(context=2), {"version": "0.11.0"}, "engine-limit"),
        ("Qwen/Qwen3-8B", ParallelPlan(data=2), {"engine": "tensorrt-llm"}, "engine-limit"),
        ("Qwen/Qwen3-8B", ParallelPlan(pipeline=64), {}, "layers-divisible"),
    ],
)
def test_a_plan_that_fails_says_which_rule(model_id, item, wish, rule):
    assert rule in rules(model_id, item, **wish)


@pytest.mark.parametrize(
    ("model_id", "item", "wish"),
    [
        ("Qwen/Qwen3-8B", ParallelPlan(), {"gpu": "A100-80", "quantization": "fp8"}),
        ("MiniMaxAI/MiniMax-M2.7", ParallelPlan(tensor=8, expert=8), {"gpu": "A100-80"}),
        ("openai/gpt-oss-120b", ParallelPlan(), {"gpu": "A100-80"}),
        ("Qwen/Qwen3-30B-A3B", ParallelPlan(tensor=4, expert=2), {"engine": "tensorrt-llm"}),
        ("Qwen/Qwen3-30B-A3B", ParallelPlan(tensor=2, pipeline=3), {}),
    ],
)
def test_a_plan_that_was_served_breaks_nothing(model_id, item, wish):
    assert not rules(model_id, item, **wish)
