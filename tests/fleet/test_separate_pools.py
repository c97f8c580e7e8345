"""Separate prefill and decode: laws of latency, throughput and transfer, and what is said where nothing is known."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.hardware import gpu, instance
from fleet.kv_transfer import Transfer, Uplink, prompt_cache_bytes, transfer_of
from fleet.latency import latency_of
from fleet.model import Missing
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.separate_pools import NOT_MEASURED, Limit, Replicas, Side, separate_pools, waiting_seconds
from fleet.serving import Serving

MODELS = {
    name: read_model(find(name).config, id=name)
    for name in ("Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3", "openai/gpt-oss-120b", "google/gemma-2-9b-it")
}
QWEN, DEEPSEEK = MODELS["Qwen/Qwen3-32B"], MODELS["deepseek-ai/DeepSeek-V3"]
SHAPES = {"L4": "g6.48xlarge", "A100-80": "p4de.24xlarge", "H100": "p5.48xlarge", "B200": "p6-b200.48xlarge"}
PLANS = [
    ParallelPlan(2),
    ParallelPlan(8),
    ParallelPlan(8, expert=8),
    ParallelPlan(data=8, expert=8),
    ParallelPlan(4, 2),
]
NOTHING = 1e-9
UNKNOWN = Missing("latency", "network", "no network rate is known")


def side(model=QWEN, plan=PLANS[0], hardware="H100", engine="vllm", input_tokens=8192, output_tokens=300, uplink=None):
    serving = Serving(model, plan, gpu(hardware), engine, None, "auto", input_tokens, output_tokens)
    return Side(serving, uplink or Uplink.of(instance(SHAPES[hardware])))


@st.composite
def pairs(draw):
    """Both sides of one model under the same requests, each on hardware and a plan of its own."""
    shared = {
        "model": MODELS[draw(st.sampled_from(sorted(MODELS)))],
        "engine": draw(st.sampled_from(["vllm", "sglang", "tensorrt-llm", "another"])),
        "input_tokens": draw(st.integers(16, 65536)),
        "output_tokens": draw(st.integers(1, 8192)),
    }
    sides = (
        side(plan=draw(st.sampled_from(PLANS)), hardware=draw(st.sampled_from(sorted(SHAPES))), **shared) for _ in "pd"
    )
    return separate_pools(*sides)


replicas = st.builds(Replicas, st.integers(1, 8), st.integers(1, 8))
shares = st.floats(min_value=0, max_value=0.999)


@given(pools=pairs(), some=replicas, more=st.integers(1, 8), share=shares)
def test_more_prefill_replicas_never_lengthen_the_first_token(pools, some, more, share):
    rate = share * pools.most(some)[0]
    before = pools.at_rate(rate, some)
    after = pools.at_rate(rate, replace(some, prefill=some.prefill + more))
    assert after.latency.ttft.mid <= before.latency.ttft.mid * (1 + NOTHING)
    assert after.latency.tpot == before.latency.tpot


@given(pools=pairs(), some=replicas, more=st.integers(1, 8), share=shares)
def test_more_decode_replicas_never_slow_a_token_down(pools, some, more, share):
    rate = share * pools.most(some)[0]
    before = pools.at_rate(rate, some)
    after = pools.at_rate(rate, replace(some, decode=some.decode + more))
    for figure in ("tpot", "ttft"):
        assert getattr(after.latency, figure).mid <= getattr(before.latency, figure).mid * (1 + NOTHING)


@given(pools=pairs(), load=st.integers(1, 512))
def test_a_token_without_prompts_between_is_never_slower_than_colocated(pools, load):
    colocated = latency_of(pools.decode.serving, load)
    assert pools.tpot(load) <= colocated.tpot.mid * (1 + NOTHING)


@given(pools=pairs(), some=replicas)
def test_the_pair_never_makes_more_than_either_side(pools, some):
    found = pools.throughput(some)
    for total, prefill, decode in zip(found.total.values, found.prefill.values, found.decode.values, strict=True):
        assert total <= min(prefill, decode) * (1 + NOTHING)
    by_side = {Limit.PREFILL: found.prefill, Limit.DECODE: found.decode}
    if found.limited_by is not Limit.TRANSFER:
        assert by_side[found.limited_by].mid == pytest.approx(found.total.mid)


@given(pools=pairs(), some=replicas, share=shares)
def test_every_figure_is_extrapolated_and_says_that_nobody_measured_separate_pools(pools, some, share):
    found = pools.at_rate(share * pools.most(some)[0], some)
    for said in (found.latency, pools.throughput(some)):
        assert said.basis == "extrapolated"
        assert said.reasons[0] == NOT_MEASURED
    for interval in (found.latency.tpot, found.latency.ttft):
        assert 0 < interval.low <= interval.mid <= interval.high < float("inf")
    assert found.first_token.total == pytest.approx(found.latency.ttft.mid)


@settings(max_examples=50)
@given(pools=pairs(), some=replicas, requests=st.integers(1, 4000))
def test_requests_in_flight_are_the_rate_times_the_time_that_each_takes(pools, some, requests):
    found = pools.in_flight(requests, some)
    seconds = found.latency.ttft.mid + pools.decode.serving.output_tokens * found.latency.tpot.mid
    assert found.requests_per_second * seconds == pytest.approx(requests, rel=0.01)
    assert found.requests_per_second < pools.most(some)[0]
    assert 0 <= found.prefill_utilisation < 1


@given(service=st.floats(0.001, 100), one=shares, other=shares)
def test_prompts_wait_longer_the_busier_the_pool_is(service, one, other):
    low, high = sorted((one, other))
    assert 0 <= waiting_seconds(service, low) <= waiting_seconds(service, high)


def test_the_wait_is_that_of_constant_service_times():
    assert waiting_seconds(2.0, 0.0) == 0.0
    assert waiting_seconds(2.0, 0.5) == pytest.approx(1.0)
    assert waiting_seconds(2.0, 0.9) == pytest.approx(9.0)


def test_at_a_rate_beyond_the_pair_there_is_no_latency_and_the_side_is_named():
    pools, some = separate_pools(side(), side()), Replicas(1, 8)
    most, limit = pools.most(some)
    assert limit is Limit.PREFILL
    found = pools.at_rate(2 * most, some)
    assert (found.latency.tpot, found.latency.ttft, found.latency.basis) == (None, None, "none")
    assert "prefill allows" in found.latency.reasons[0]
    assert found.prefill_utilisation == pytest.approx(2.0)
    assert pools.most(Replicas(8, 1))[1] is Limit.DECODE


def test_one_alone_waits_for_nobody():
    found = separate_pools(side(), side()).at_rate(0, Replicas(1, 1))
    assert (found.first_token.waiting, found.concurrency, found.prefill_utilisation) == (0.0, 1, 0.0)
    assert found.latency.ttft.mid > latency_of(side().serving).ttft.mid


def test_a_prompts_cache_goes_over_the_part_of_the_network_that_its_gpus_have():
    serving, uplink = side().serving, Uplink.of(instance("p5.48xlarge"))
    assert uplink.bytes_per_second == 50e9
    assert Uplink.of(instance("p5.48xlarge"), 7).bytes_per_second == pytest.approx(50e9 / 7)
    found = transfer_of(serving, serving, uplink, uplink)
    assert isinstance(found, Transfer)
    assert prompt_cache_bytes(QWEN, "auto", 8192) == 8192 * 262144
    assert found.seconds == pytest.approx(8192 * 262144 / 2 / 50e9)
    assert found.doubts == ()


def test_the_slower_end_decides_and_a_latent_goes_whole_to_every_rank():
    fast, slow = Uplink.of(instance("p5.48xlarge")), Uplink.of(instance("g6.xlarge"))
    serving = side().serving
    assert transfer_of(serving, serving, fast, slow).seconds == transfer_of(serving, serving, slow, fast).seconds
    assert transfer_of(serving, serving, fast, slow).doubts == ("g6.xlarge has its network rate in bursts alone",)
    latent = [replace(serving, model=DEEPSEEK, plan=ParallelPlan(size)) for size in (1, 8)]
    one, eight = (transfer_of(item, item, fast, fast).seconds for item in latent)
    assert one == eight


def test_a_slow_network_limits_the_pair():
    narrow = Uplink("narrow", 1e6, has_efa=False, is_burst=False)
    pools = separate_pools(side(uplink=narrow), side(uplink=narrow))
    found = pools.throughput(Replicas(2, 2))
    assert found.limited_by is Limit.TRANSFER
    assert "narrow has no EFA: the cache goes over TCP" in found.reasons
    assert found.total.mid < min(found.prefill.mid, found.decode.mid)


def test_without_a_network_rate_the_first_token_is_not_known_and_the_rest_is():
    pools = separate_pools(side(uplink=UNKNOWN), side())
    for found in (pools.at_rate(0.5, Replicas(2, 2)), pools.in_flight(8, Replicas(2, 2))):
        assert found.latency.ttft is None
        assert found.first_token is None
        assert found.latency.tpot is not None
        assert found.latency.reasons[-1] == UNKNOWN.message
    assert pools.throughput(Replicas(1, 1)).total.mid > 0


def test_what_can_not_be_worked_out_names_the_missing_figure():
    embedding = replace(QWEN, is_generative=False)
    found = separate_pools(side(model=embedding), side(model=embedding))
    assert isinstance(found, Missing)
    assert "nothing to decode" in found.message
    bare = replace(side(), serving=replace(side().serving, gpu=gpu("A10G")))
    for sides in ((bare, side()), (side(), bare)):
        found = separate_pools(*sides)
        assert isinstance(found, Missing)
        assert found.message.startswith("A10G: ")


def test_a_prefill_pool_of_another_gpu_is_named_and_changes_no_step_of_decode():
    same = separate_pools(side(), side()).at_rate(0, Replicas(1, 1)).latency
    mixed = separate_pools(side(hardware="L4", plan=ParallelPlan(8)), side()).at_rate(0, Replicas(1, 1)).latency
    assert "no measured point on L4" in mixed.reasons
    assert mixed.tpot == same.tpot
    assert mixed.ttft.mid > same.ttft.mid
