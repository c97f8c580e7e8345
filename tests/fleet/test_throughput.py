"""Throughput at saturation: laws, and what it says of kinds that were not measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.hardware import gpu
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.serving import Serving
from fleet.throughput import throughput_of

MODELS = {
    name: read_model(find(name).config, id=name)
    for name in ("meta-llama/Meta-Llama-3.1-70B", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b", "Qwen/Qwen3-8B")
}
LLAMA = MODELS["meta-llama/Meta-Llama-3.1-70B"]
TWO_GPUS = ParallelPlan(tensor=2)
PLANS = [ParallelPlan(tensor=8), ParallelPlan(tensor=8, expert=8), ParallelPlan(data=8, expert=8)]
lengths = st.integers(min_value=16, max_value=32768)


def ask(model=LLAMA, plan=TWO_GPUS, hardware="H200", engine="tensorrt-llm", **question):
    usual = {"quantization": "fp8", "kv_dtype": "fp8", "input_tokens": 1024, "output_tokens": 1024}
    return throughput_of(Serving(model, plan, gpu(hardware), engine, **(usual | question)))


@given(
    model=st.sampled_from(sorted(MODELS)),
    plan=st.sampled_from(PLANS),
    hardware=st.sampled_from(["L4", "A100-80", "H200", "B200"]),
    engine=st.sampled_from(["vllm", "sglang", "tensorrt-llm", "another"]),
    input_tokens=lengths,
    output_tokens=lengths,
)
def test_an_interval_rises_and_a_gpu_makes_its_part(model, plan, hardware, engine, input_tokens, output_tokens):
    found = ask(MODELS[model], plan, hardware, engine, input_tokens=input_tokens, output_tokens=output_tokens)
    assert 0 < found.total.low <= found.total.mid <= found.total.high
    assert found.per_gpu.mid == pytest.approx(found.total.mid / plan.gpus)
    assert found.concurrency >= 1
    assert found.basis == ("extrapolated" if found.reasons else "fitted")


@given(model=st.sampled_from(sorted(MODELS)), shorter=lengths, more=lengths)
def test_a_longer_prompt_never_gives_more_tokens(model, shorter, more):
    plan = ParallelPlan(tensor=8)
    before = ask(MODELS[model], plan, "B200", input_tokens=shorter, output_tokens=1024)
    after = ask(MODELS[model], plan, "B200", input_tokens=shorter + more, output_tokens=1024)
    assert after.total.mid <= before.total.mid * (1 + 1e-9)


def test_a_measured_plan_is_fitted_and_near_its_point():
    found = ask()
    assert found.basis == "fitted"
    assert found.per_gpu.low < 2582 < found.per_gpu.high


def test_other_engines_and_gpus_are_extrapolated_and_wider():
    measured = ask().total.width
    for other in (ask(engine="vllm"), ask(hardware="A100-80", plan=ParallelPlan(tensor=4)), ask(engine="another")):
        assert other.basis == "extrapolated"
        assert other.reasons
        assert other.total.width >= measured
    assert "measured on tensorrt-llm alone" in ask(engine="vllm").reasons


def test_pipelines_are_extrapolated():
    found = ask(plan=ParallelPlan(tensor=2, pipeline=2))
    assert any("pipeline" in reason for reason in found.reasons)


def test_without_rates_there_is_no_throughput():
    found = ask(hardware="A10G")
    assert (found.total, found.per_gpu, found.concurrency, found.basis) == (None, None, None, "none")


def test_a_model_that_can_not_be_read_has_none():
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64}
    assert ask(read_model(config, id="a/broken")).basis == "none"
