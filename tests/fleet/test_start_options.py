"""Ways to start: each preparation takes no longer than the start before it; waking is the fastest."""

from hypothesis import given
from hypothesis import strategies as st

from fleet.cold_start import ColdStartWish, Replica
from fleet.cold_start_data import weight_source
from fleet.start_options import start_options

REPLICAS = st.builds(
    Replica,
    engine=st.sampled_from(["vllm", "sglang", "tensorrt-llm"]),
    weights_bytes=st.integers(min_value=10**8, max_value=10**12),
    layers=st.integers(min_value=1, max_value=130),
    gpus=st.sampled_from([1, 2, 8]),
    pcie_gigabytes_per_second=st.sampled_from([None, 32.0, 64.0]),
)


@given(REPLICAS)
def test_each_preparation_takes_no_longer_and_a_snapshot_is_offered_for_one_gpu_only(replica):
    found = {item.name: item.start.total for item in start_options(replica, ColdStartWish(weight_source("fsx-lustre")))}
    assert found["preloaded"].mid <= found["as-planned"].mid
    assert found["preloaded-cached"].mid <= found["preloaded"].mid
    assert found["sleep-1"].mid <= found["preloaded-cached"].mid
    assert ("snapshot" in found) == (replica.gpus == 1)


def test_eight_billion_parameters_may_start_in_twenty_seconds_once_node_image_and_caches_are_there():
    small = Replica(engine="vllm", weights_bytes=16_100_000_000, layers=32, pcie_gigabytes_per_second=64.0)
    ways = {
        item.name: item.start.verdict(20) for item in start_options(small, ColdStartWish(weight_source("fsx-lustre")))
    }
    assert not ways["as-planned"].is_reachable
    assert ways["preloaded-cached"].is_reachable
