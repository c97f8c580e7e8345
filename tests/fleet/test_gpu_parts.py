"""Parts of a GPU: never faster or larger than the whole, and never called measured."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.gpu_parts import gpu_of, slice_of
from fleet.hardware import gpu_models, instance, instance_types
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.plan_wish import PlanWish
from fleet.planner import plan
from fleet.sharing import LayoutError, slice_memory

RATES = ("memory_bandwidth_gb_per_second", "bf16_tflops", "fp8_tflops", "fp4_tflops")
SLICES = sorted((model.name, item.name) for model in gpu_models().values() for item in model.mig_profiles)
SMALL = read_model(find("Qwen/Qwen3-0.6B").config, id="Qwen/Qwen3-0.6B")


@given(slice_=st.sampled_from(SLICES))
def test_a_slice_is_never_faster_or_larger_than_its_gpu(slice_):
    whole, cut = hardware.gpu(slice_[0]), slice_of(hardware.gpu(slice_[0]), slice_[1])
    for rate in RATES:
        assert (getattr(cut, rate) is None) == (getattr(whole, rate) is None)
        assert getattr(cut, rate) is None or 0 < getattr(cut, rate) <= getattr(whole, rate)
    memory = slice_memory(whole, slice_[1])
    if memory is not None:
        assert 0 <= memory.memory_bytes - cut.memory_bytes < hardware.BYTES_PER_MIB


def test_a_slice_has_the_part_of_its_memory_slices_and_of_its_compute_slices():
    whole, cut = hardware.gpu("H100"), slice_of(hardware.gpu("H100"), "2g.20gb")
    assert cut.name == "H100 2g.20gb"
    assert cut.memory_bandwidth_gb_per_second == pytest.approx(whole.memory_bandwidth_gb_per_second * 2 / 8)
    assert cut.bf16_tflops == pytest.approx(whole.bf16_tflops * 2 / 7)
    with pytest.raises(LayoutError, match="no MIG profile"):
        slice_of(whole, "9g.20gb")


def test_a_partitioned_instance_has_its_part_and_the_others_the_whole():
    for shape in instance_types().values():
        found = gpu_of(shape)
        if shape.gpu_fraction == 1:
            assert found == hardware.gpu(shape.gpu)
        else:
            assert found.memory_mib == shape.gpu_memory_mib
            assert not found.mig_profiles


def test_a_plan_on_a_slice_is_slower_cheaper_and_extrapolated():
    wish = PlanWish(gpu="H100", instance="p5.48xlarge", tensor=1, context_tokens=2048)
    whole = plan(SMALL, wish).to_document()
    cut = plan(SMALL, PlanWish(**_asked(wish), mig_profile="2g.20gb")).to_document()
    assert (whole["latency"]["basis"], cut["latency"]["basis"]) == ("fitted", "extrapolated")
    assert cut["latency"]["tpot_seconds"]["mid"] > whole["latency"]["tpot_seconds"]["mid"]
    rates = [found["throughput_tokens_per_second"]["total"]["mid"] for found in (cut, whole)]
    assert rates[0] < rates[1] / 2
    assert cut["throughput_tokens_per_second"]["basis"] == "extrapolated"
    assert cut["cost"]["gpu_share"] == pytest.approx(whole["cost"]["gpu_share"] / 3)
    assert cut["cost"]["usd_per_hour_of_share"] == pytest.approx(whole["cost"]["usd_per_hour_of_share"] / 3)


def test_a_profile_that_the_gpu_lacks_is_an_answer_without_a_speed():
    found = plan(SMALL, PlanWish(gpu="L4", mig_profile="1g.10gb")).to_document()
    assert found["fits"] != "yes"
    assert (found["latency"]["basis"], found["latency"]["tpot_seconds"]) == ("none", None)


def test_a_plan_on_a_partitioned_instance_sees_its_part_of_the_memory():
    found = plan(SMALL, PlanWish(instance="g6f.large")).to_document()
    assert found["hardware"]["visible_bytes"] == instance("g6f.large").gpu_memory_mib * hardware.BYTES_PER_MIB
    assert found["latency"]["basis"] != "fitted"


def _asked(wish):
    return {"gpu": wish.gpu, "instance": wish.instance, "tensor": 1, "context_tokens": wish.context_tokens}
