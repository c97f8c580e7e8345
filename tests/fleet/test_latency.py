"""Latency: laws of the intervals, and what they say about known points."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.hardware import GpuModel, gpu, gpu_models
from fleet.latency import latency_of
from fleet.latency_fit import bundled_fit
from fleet.latency_interval import Interval
from fleet.latency_model import Operations, work_of
from fleet.latency_work import Load, StepWork, step_work
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.serving import Serving

ENGINES = ["vllm", "sglang", "tensorrt-llm", "another"]
GPUS = ["L4", "A100-80", "H100", "H200", "B200"]
PLANS = [
    ParallelPlan(),
    ParallelPlan(tensor=4),
    ParallelPlan(tensor=8, expert=8),
    ParallelPlan(data=8, expert=8),
    ParallelPlan(tensor=4, pipeline=2),
    ParallelPlan(tensor=8, context=2),
]


def known(model_id):
    return read_model(find(model_id).config, id=model_id)


DENSE = json.loads((Path(__file__).parents[1] / "data" / "models" / "dense.json").read_text(encoding="utf-8"))


def llama(layers=32, width=14336, hidden=4096):
    sizes = {"hidden_size": hidden, "intermediate_size": width, "num_hidden_layers": layers, "vocab_size": 128256}
    config = DENSE | sizes | {"num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072}
    return read_model(config, id="a/llama")


MODELS = {
    name: known(name)
    for name in (
        "Qwen/Qwen3-32B",
        "deepseek-ai/DeepSeek-V3",
        "openai/gpt-oss-120b",
        "zai-org/GLM-5-FP8",
        "Qwen/Qwen3.5-397B-A17B",
        "google/gemma-2-9b-it",
        "nvidia/Nemotron-H-56B-Base-8K",
    )
}
questions = st.fixed_dictionaries(
    {
        "engine": st.sampled_from(ENGINES),
        "quantization": st.sampled_from([None, "bf16", "fp8", "nvfp4", "awq"]),
        "kv_dtype": st.sampled_from(["auto", "fp8"]),
        "concurrency": st.integers(min_value=1, max_value=2048),
        "input_tokens": st.integers(min_value=1, max_value=131072),
        "output_tokens": st.integers(min_value=1, max_value=32768),
    }
)
models, hardware, plans = st.sampled_from(sorted(MODELS)), st.sampled_from(GPUS).map(gpu), st.sampled_from(PLANS)


def asked(model, plan, hardware, question):
    """The latency at the question's load."""
    served = {name: value for name, value in question.items() if name != "concurrency"}
    return latency_of(Serving(model, plan, hardware, **served), question["concurrency"])


def rises(before, after, figure):
    """Low may fall only where the wider interval of what was not measured begins."""
    one, other = getattr(before, figure), getattr(after, figure)
    compared = [(one.mid, other.mid), (one.high, other.high)]
    if before.basis == after.basis:
        compared.append((one.low, other.low))
    return all(right >= left * (1 - 1e-9) for left, right in compared)


@given(model=models, plan=plans, hardware=hardware, question=questions)
def test_an_interval_rises_and_stays_above_nothing(model, plan, hardware, question):
    latency = asked(MODELS[model], plan, hardware, question)
    for interval in (latency.tpot, latency.ttft):
        assert 0 < interval.low <= interval.mid <= interval.high < float("inf")


@given(model=models, plan=plans, hardware=hardware, question=questions, more=st.integers(1, 1000))
def test_more_requests_in_flight_never_make_a_token_faster(model, plan, hardware, question, more):
    question["concurrency"] = min(question["concurrency"], 1000)
    before = asked(MODELS[model], plan, hardware, question)
    after = asked(MODELS[model], plan, hardware, question | {"concurrency": question["concurrency"] + more})
    assert rises(before, after, "tpot")
    assert rises(before, after, "ttft")


@given(model=models, plan=plans, hardware=hardware, question=questions, more=st.integers(1, 100_000))
def test_a_longer_prompt_never_makes_a_token_faster(model, plan, hardware, question, more):
    before = asked(MODELS[model], plan, hardware, question)
    after = asked(MODELS[model], plan, hardware, question | {"input_tokens": question["input_tokens"] + more})
    assert rises(before, after, "tpot")
    assert rises(before, after, "ttft")


@settings(max_examples=30)
@given(
    plan=plans,
    hardware=hardware,
    question=questions,
    layers=st.integers(1, 64),
    width=st.integers(1, 256),
    more=st.tuples(st.integers(0, 16), st.integers(0, 64)),
)
def test_more_weights_never_make_a_token_faster(plan, hardware, question, layers, width, more):
    small = llama(layers, width * 128)
    large = llama(layers + more[0], (width + more[1]) * 128)
    before = asked(small, plan, hardware, question)
    after = asked(large, plan, hardware, question)
    assert rises(before, after, "tpot")


@given(model=models, question=questions)
def test_what_was_not_measured_says_so_and_is_wider(model, question):
    for hardware in (gpu("L4"), gpu("H100")):
        for engine in ("vllm", "another"):
            latency = asked(MODELS[model], ParallelPlan(), hardware, question | {"engine": engine})
            assert latency.basis == ("extrapolated" if latency.reasons else "fitted")
            assert latency.tpot.width >= bundled_fit().tpot.fitted.high / bundled_fit().tpot.fitted.low * (1 - 1e-9)
    assert "no measured point of another" in latency.reasons


def ask(model, plan, hardware, engine="vllm", **question):
    usual = {"quantization": "fp8", "concurrency": 16, "input_tokens": 1024, "output_tokens": 1024}
    return asked(model, plan, hardware, {"engine": engine} | usual | question)


def test_a_measured_kind_of_plan_is_fitted():
    latency = ask(llama(80, 28672, 8192), ParallelPlan(tensor=4), gpu("H100"))
    assert latency.basis == "fitted"
    assert latency.reasons == ()
    assert latency.tpot.low < 0.0132 < latency.tpot.high


@pytest.mark.parametrize(
    ("plan", "hardware", "question", "reason"),
    [
        (ParallelPlan(), "L4", {}, "no measured point on L4"),
        (ParallelPlan(), "H100", {"quantization": "awq"}, "awq weights"),
        (ParallelPlan(tensor=4, pipeline=2), "H100", {}, "pipeline or context parallelism (TP4xPP2)"),
        (ParallelPlan(tensor=16), "H100", {}, "several nodes (16 GPUs)"),
        (ParallelPlan(), "H100", {"input_tokens": 100_000}, "asked for 100000"),
        (ParallelPlan(), "H100", {"concurrency": 100_000}, "asked for 100000"),
    ],
)
def test_a_reason_names_what_was_not_measured(plan, hardware, question, reason):
    latency = ask(llama(), plan, gpu(hardware), **question)
    assert latency.basis == "extrapolated"
    assert any(reason in sentence for sentence in latency.reasons), latency.reasons


@pytest.mark.parametrize("name", [name for name, item in gpu_models().items() if item.bf16_tflops is None])
def test_a_gpu_without_known_rates_has_no_figure(name):
    latency = ask(llama(), ParallelPlan(), gpu(name))
    assert (latency.tpot, latency.ttft, latency.basis) == (None, None, "none")
    assert name in latency.reasons[0]


def test_a_model_that_can_not_be_read_has_no_figure():
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64}
    latency = ask(read_model(config, id="a/broken"), ParallelPlan(), gpu("H100"))
    assert latency.basis == "none"
    assert latency.reasons[0]


def test_an_embedding_model_has_a_first_token_alone():
    model = replace(llama(), is_generative=False)
    latency = ask(model, ParallelPlan(), gpu("H100"))
    assert latency.tpot is None
    assert latency.ttft is not None
    assert latency.basis == "extrapolated"


def test_experts_are_read_as_far_as_the_batch_touches_them():
    work = work_of(MODELS["deepseek-ai/DeepSeek-V3"])
    assert work.chosen_part(1) == pytest.approx(8 / 256)
    assert work.chosen_part(64) == pytest.approx(1 - (1 - 8 / 256) ** 64)
    assert work_of(llama()).chosen_part(64) == 0


def test_the_units_follow_the_encoding_and_the_gpu():
    assert work_of(llama(), "fp8").operations_on((9, 0)) is Operations.FP8
    assert work_of(llama(), "fp8").operations_on((8, 0)) is Operations.BF16
    assert work_of(llama(), "nvfp4").operations_on((9, 0)) is Operations.BF16
    assert work_of(llama(), "nvfp4").operations_on((10, 0)) is Operations.FP4
    assert work_of(llama(), "awq").operations_on((10, 0)) is Operations.BF16
    assert work_of(llama()).operations_on(None) is Operations.BF16


def test_the_roofline_of_an_8b_on_one_h100_is_its_bytes_over_the_bandwidth():
    step = step_work(work_of(llama()), ParallelPlan(), gpu("H100"), Load(1, 1000, 1000))
    assert isinstance(step, StepWork)
    read_bytes = 2 * (8_030_261_248 - 128256 * 4096)
    assert step.dense == pytest.approx(read_bytes / 3350e9, rel=0.001)
    assert step.kv == pytest.approx(1500 * 131072 / 3350e9)
    assert step.hops == 0


def test_a_full_cache_makes_the_first_token_wait():
    model, hardware = llama(), gpu("L4")
    few = ask(model, ParallelPlan(), hardware, concurrency=8, input_tokens=4096)
    many = ask(model, ParallelPlan(), hardware, concurrency=256, input_tokens=4096)
    assert many.ttft.mid > 20 * few.ttft.mid


def test_a_gpu_whose_memory_is_not_known_has_a_latency():
    bare = GpuModel(name="X", memory_bandwidth_gb_per_second=1000, bf16_tflops=100, source="own")
    assert ask(llama(), ParallelPlan(tensor=2), bare).basis == "extrapolated"


def test_an_interval_that_falls_is_refused():
    with pytest.raises(ValueError, match="rises"):
        Interval(2, 1, 3)
