"""GPUs and instance types: laws over all of them, then the odd ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.hardware import SharingMode, UnknownHardware

INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
GPUS = st.sampled_from(sorted(hardware.gpu_models()))


@given(name=INSTANCES, gpus=st.integers(min_value=1, max_value=512))
def test_the_nodes_of_a_replica_hold_its_gpus_and_one_less_would_not(name, gpus):
    shape = hardware.instance(name)
    nodes = hardware.nodes_per_replica(gpus, shape)
    assert (nodes - 1) * shape.gpus < gpus <= nodes * shape.gpus


@given(name=INSTANCES)
def test_every_instance_carries_a_known_gpu_and_consistent_cards(name):
    shape = hardware.instance(name)
    assert shape.gpu in hardware.gpu_models()
    assert [card.index for card in shape.network_cards] == list(range(len(shape.network_cards)))
    assert sum(card.max_interfaces for card in shape.network_cards) == shape.max_interfaces
    assert sum(card.supports_efa for card in shape.network_cards) >= shape.max_efa_interfaces
    assert shape.supports_efa == any(card.supports_efa for card in shape.network_cards)
    assert "on-demand" in shape.purchase_classes


@given(name=GPUS)
def test_a_process_never_sees_more_memory_than_the_cloud_reports(name):
    gpu = hardware.gpu(name)
    if gpu.visible_memory_gib is not None and gpu.memory_mib is not None:
        assert gpu.memory_bytes <= gpu.memory_mib * hardware.BYTES_PER_MIB


@given(name=GPUS)
def test_profiles_that_fill_a_gpu_fit_its_slices(name):
    for profile in hardware.gpu(name).mig_profiles:
        assert profile.per_gpu * profile.compute_slices <= 7
        assert profile.memory_gb > 0


@given(word=st.text(max_size=20))
def test_an_unknown_name_is_an_error_that_names_known_ones(word):
    if word not in hardware.instance_types():
        with pytest.raises(UnknownHardware, match=r"is not known; (did you mean|known:)"):
            hardware.instance(word)


def test_the_nearest_name_is_offered():
    with pytest.raises(UnknownHardware, match=r"'p5\.48xlage' is not known; did you mean 'p5\.48xlarge'\?"):
        hardware.instance("p5.48xlage")
    with pytest.raises(UnknownHardware, match="the GPU 'H10' is not known; did you mean 'H100'"):
        hardware.gpu("H10")


def test_memory_is_what_the_cloud_reports_and_not_what_the_name_says():
    assert hardware.instance("g6.xlarge").gpu_memory_mib == 22888
    assert hardware.gpu("L4").memory_bytes == 22888 * hardware.BYTES_PER_MIB
    assert hardware.instance("p5e.48xlarge").gpu_memory_mib == 144384
    assert hardware.gpu("H100").memory_bytes == int(79.18 * hardware.BYTES_PER_GIB)


def test_a_part_of_a_gpu_counts_as_one_with_its_fraction():
    part = hardware.instance("g6f.2xlarge")
    assert (part.gpus, part.gpu_fraction, part.gpu_memory_mib) == (1, 0.25, 5722)
    assert part not in hardware.instances_with("L4")


def test_the_first_card_of_p6_b300_has_no_efa():
    shape = hardware.instance("p6-b300.48xlarge")
    assert (len(shape.network_cards), shape.max_efa_interfaces) == (17, 16)
    assert not shape.network_cards[0].supports_efa


def test_one_gpu_alone_has_no_nvlink():
    assert hardware.instance("p5.48xlarge").has_nvlink
    assert not hardware.instance("p5.4xlarge").has_nvlink
    assert not hardware.instance("g6.12xlarge").has_nvlink


def test_instances_with_a_gpu_are_listed_smallest_first():
    assert [item.name for item in hardware.instances_with("H100")] == ["p5.4xlarge", "p5.48xlarge"]


def test_only_a_gpu_with_profiles_can_be_cut():
    assert SharingMode.MIG in hardware.gpu("H100").sharing_modes
    assert hardware.gpu("L4").sharing_modes == (SharingMode.EXCLUSIVE, SharingMode.MPS, SharingMode.TIME_SLICING)
