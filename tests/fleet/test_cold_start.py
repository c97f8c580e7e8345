"""Cold start: the total is the sum of its phases, and sharing a source never makes it faster."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cold_start import (
    ColdStartWish,
    ImageState,
    Phase,
    Replica,
    SnapshotImpossible,
    StartMode,
    cold_start_of,
)
from fleet.cold_start_data import constants, weight_source

GB = 10**9
LLAMA_8B = Replica("vllm", weights_bytes=16 * GB, layers=32, pcie_gigabytes_per_second=64)
LLAMA_70B_FP8 = Replica("vllm", weights_bytes=71 * GB, layers=80, gpus=8, pcie_gigabytes_per_second=64)
LLAMA_405B = Replica("vllm", weights_bytes=812 * GB, layers=126, gpus=16, nodes=2, pcie_gigabytes_per_second=64)
LUSTRE = weight_source("fsx-lustre")
READY = ColdStartWish(
    LUSTRE.sized(24, 1000),
    is_node_ready=True,
    image=ImageState.PRELOADED,
    has_compile_cache=True,
    captures_few_sizes=True,
    skips_p2p_check=True,
)
sources = st.one_of(
    st.sampled_from([item for item in constants().weight_sources if item.aggregate_gigabytes_per_second]),
    st.builds(
        LUSTRE.sized,
        st.floats(min_value=1.2, max_value=100),
        st.sampled_from([125, 250, 500, 1000]),
    ),
)
wishes = st.builds(
    ColdStartWish,
    sources,
    replicas_together=st.integers(min_value=1, max_value=64),
    mode=st.sampled_from([StartMode.COLD, StartMode.SLEEP_1, StartMode.SLEEP_2]),
    is_node_ready=st.booleans(),
    image=st.sampled_from(ImageState),
    streams_weights=st.booleans(),
    has_compile_cache=st.booleans(),
    skips_compile=st.booleans(),
    captures_few_sizes=st.booleans(),
    skips_p2p_check=st.booleans(),
    needs_engine_build=st.booleans(),
)
replicas = st.builds(
    Replica,
    st.sampled_from(["vllm", "sglang", "tensorrt-llm"]),
    weights_bytes=st.integers(min_value=10**8, max_value=10**12),
    layers=st.integers(min_value=1, max_value=130),
    gpus=st.integers(min_value=1, max_value=16),
    nodes=st.integers(min_value=1, max_value=2),
    pcie_gigabytes_per_second=st.sampled_from([None, 32.0, 64.0]),
)


@given(replica=replicas, wish=wishes)
def test_the_total_is_the_sum_of_the_phases(replica, wish):
    start = cold_start_of(replica, wish)
    assert set(start.phases) == set(Phase)
    for name in ("low", "mid", "high"):
        assert getattr(start.total, name) == pytest.approx(sum(getattr(item, name) for item in start.phases.values()))


@given(replica=replicas, wish=wishes, more=st.integers(min_value=1, max_value=64))
def test_fan_out_never_makes_it_faster(replica, wish, more):
    alone = cold_start_of(replica, wish).total
    crowd = cold_start_of(replica, replace(wish, replicas_together=wish.replicas_together + more)).total
    assert all(after >= before for before, after in zip(alone.values, crowd.values, strict=True))


@given(replica=replicas, wish=wishes, more=st.integers(min_value=1, max_value=10**11))
def test_more_weights_never_start_faster(replica, wish, more):
    small = cold_start_of(replica, wish).total
    large = cold_start_of(replace(replica, weights_bytes=replica.weights_bytes + more), wish).total
    assert large.mid >= small.mid


@given(replica=replicas, wish=wishes)
def test_preparing_never_makes_it_slower(replica, wish):
    prepared = replace(
        wish,
        is_node_ready=True,
        image=ImageState.PRELOADED,
        has_compile_cache=True,
        skips_p2p_check=True,
        streams_weights=True,
        needs_engine_build=False,
    )
    # A cache of compiled kernels takes its own time, which is more than compiling a model of a few layers.
    few_layers = replica.layers < 30
    assert few_layers or cold_start_of(replica, prepared).total.mid <= cold_start_of(replica, wish).total.mid


@given(replica=replicas, wish=wishes, target=st.floats(min_value=1, max_value=5000))
def test_a_verdict_agrees_with_the_total(replica, wish, target):
    start = cold_start_of(replica, wish)
    verdict = start.verdict(target)
    assert verdict.is_reachable == (start.total.low <= target)
    assert (verdict.breaking_phase is None) == verdict.is_likely


def test_every_constant_has_a_source():
    data = constants()
    for item in (*data.seconds.values(), *data.gigabytes_per_second.values(), data.image_gigabytes):
        assert item.low <= item.mid <= item.high
        assert item.source
    assert all(item.source for item in data.weight_sources)


def test_an_8b_starts_within_20_seconds_on_a_prepared_node():
    start = cold_start_of(LLAMA_8B, READY)
    verdict = start.verdict(20)
    assert verdict.is_reachable
    assert start.phases[Phase.WEIGHTS].mid < 3
    assert start.total.mid < 25


def test_a_new_node_breaks_20_seconds_whatever_the_file_system():
    cold = ColdStartWish(LUSTRE.sized(24, 1000))
    verdict = cold_start_of(LLAMA_8B, cold).verdict(20)
    assert not verdict.is_reachable
    assert verdict.breaking_phase is Phase.IMAGE
    pulled = cold_start_of(LLAMA_8B, replace(cold, image=ImageState.PRELOADED)).verdict(20)
    assert pulled.breaking_phase is Phase.NODE
    assert pulled.weights_gigabytes_per_second is None


def test_a_small_file_system_is_what_breaks_a_70b():
    wish = replace(READY, weights=LUSTRE.sized(1.2, 125))
    start = cold_start_of(LLAMA_70B_FP8, wish)
    assert start.phases[Phase.WEIGHTS].low == pytest.approx(71 / 0.15)
    verdict = start.verdict(20)
    assert verdict.breaking_phase is Phase.WEIGHTS
    assert not verdict.is_reachable


def test_the_check_of_gpu_pairs_alone_breaks_20_seconds():
    verdict = cold_start_of(LLAMA_70B_FP8, replace(READY, skips_p2p_check=False)).verdict(20)
    assert not verdict.is_reachable
    assert verdict.breaking_phase is Phase.LOAD


def test_two_nodes_read_half_each_and_share_the_file_system():
    start = cold_start_of(LLAMA_405B, READY)
    assert start.phases[Phase.WEIGHTS].low == pytest.approx(406 / 12)


def test_a_sleeping_replica_wakes_in_seconds_and_needs_no_node():
    start = cold_start_of(LLAMA_8B, ColdStartWish(LUSTRE.sized(1.2, 125), mode=StartMode.SLEEP_1))
    assert start.total.high < 2
    assert start.phases[Phase.NODE].high == 0
    emptied = cold_start_of(LLAMA_8B, ColdStartWish(LUSTRE.sized(1.2, 125), mode=StartMode.SLEEP_2))
    assert emptied.total.mid > start.total.mid


def test_a_snapshot_restores_one_gpu_and_no_more():
    start = cold_start_of(LLAMA_8B, ColdStartWish(weight_source("nvme"), mode=StartMode.SNAPSHOT))
    assert 4 < start.phases[Phase.WEIGHTS].mid < 7
    with pytest.raises(SnapshotImpossible, match="the replica has 8"):
        cold_start_of(LLAMA_70B_FP8, ColdStartWish(weight_source("nvme"), mode=StartMode.SNAPSHOT))


def test_an_engine_that_nobody_has_built_costs_minutes():
    replica = replace(LLAMA_70B_FP8, engine="tensorrt-llm")
    built = cold_start_of(replica, READY)
    unbuilt = cold_start_of(replica, replace(READY, needs_engine_build=True))
    assert unbuilt.total.low - built.total.low == 300
    assert unbuilt.verdict(20).breaking_phase is Phase.ENGINE_BUILD
