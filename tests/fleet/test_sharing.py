"""Sharing a GPU: laws over every profile, the listings of real drivers, then layouts that work and that don't."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware, sharing
from fleet.sharing import Basis, Degree, LayoutError, SharingWay

GIB = hardware.BYTES_PER_GIB
WITH_MIG = sorted(name for name, gpu in hardware.gpu_models().items() if gpu.mig_profiles)
WITHOUT_MIG = sorted(set(hardware.gpu_models()) - set(WITH_MIG))
BALANCED = {
    "A30": "2x1g.6gb+1x2g.12gb",
    "A100-40": "2x1g.5gb+1x2g.10gb+1x3g.20gb",
    "A100-80": "2x1g.10gb+1x2g.20gb+1x3g.40gb",
    "H100": "2x1g.10gb+1x2g.20gb+1x3g.40gb",
    "H200": "2x1g.18gb+1x2g.35gb+1x3g.71gb",
    "B200": "2x1g.23gb+1x2g.45gb+1x3g.90gb",
    "B300": "2x1g.34gb+1x2g.67gb+1x3g.135gb",
}
"""NVIDIA/mig-parted@bd7160f deployments/systemd/config-default.yaml, all-balanced."""
STARTS = {
    "1g.10gb": (0, 1, 2, 3, 4, 5, 6),
    "1g.10gb+me": (0, 1, 2, 3, 4, 5, 6),
    "1g.20gb": (0, 2, 4, 6),
    "2g.20gb": (0, 2, 4),
    "3g.40gb": (0, 4),
    "4g.40gb": (0,),
    "7g.80gb": (0,),
}
"""`nvidia-smi mig -lgipp` on an H100 80GB HBM3, public listings."""


@st.composite
def gpu_and_profiles(draw):
    gpu = hardware.gpu(draw(st.sampled_from(WITH_MIG)))
    names = st.sampled_from([profile.name for profile in gpu.mig_profiles])
    return gpu, draw(st.lists(names, min_size=1, max_size=8))


@given(chosen=gpu_and_profiles())
def test_placed_instances_never_overlap_and_stay_on_the_gpu(chosen):
    gpu, profiles = chosen
    if not sharing.fits_layout(gpu, profiles):
        with pytest.raises(LayoutError):
            sharing.place_layout(gpu, profiles)
        return
    placed = sharing.place_layout(gpu, profiles)
    assert Counter(item.profile for item in placed) == Counter(profiles)
    taken = [
        item.start + step
        for item in placed
        for step in range(sharing.memory_slices(gpu, sharing.profile_of(gpu, item.profile)))
    ]
    assert len(taken) == len(set(taken))
    assert max(taken) < sharing.memory_slices(gpu)
    compute = sum(sharing.profile_of(gpu, item.profile).compute_slices for item in placed)
    assert compute <= sharing.compute_slices(gpu)
    known = [memory for item in placed if (memory := sharing.slice_memory(gpu, item.profile))]
    if gpu.memory_bytes is not None:
        assert sum(memory.memory_bytes for memory in known) <= gpu.memory_bytes


@given(chosen=gpu_and_profiles(), data=st.data())
def test_what_fits_fits_without_one_of_them_and_in_any_order(chosen, data):
    gpu, profiles = chosen
    if not sharing.fits_layout(gpu, profiles):
        return
    shuffled = data.draw(st.permutations(profiles))
    assert sharing.place_layout(gpu, shuffled) == sharing.place_layout(gpu, profiles)
    assert sharing.fits_layout(gpu, shuffled[1:])


@pytest.mark.parametrize("name", WITH_MIG)
def test_the_stated_count_of_each_profile_fits_and_one_more_does_not(name):
    gpu = hardware.gpu(name)
    for profile in gpu.mig_profiles:
        assert sharing.fits_layout(gpu, [profile.name] * profile.per_gpu)
        assert not sharing.fits_layout(gpu, [profile.name] * (profile.per_gpu + 1))


@pytest.mark.parametrize("name", WITH_MIG)
def test_a_slice_is_no_larger_than_its_name_and_larger_slices_hold_more(name):
    gpu = hardware.gpu(name)
    sizes = []
    for profile in gpu.mig_profiles:
        memory = sharing.slice_memory(gpu, profile.name)
        assert memory is not None
        assert memory.source
        assert memory.memory_bytes <= profile.memory_gb * GIB
        sizes.append((sharing.memory_slices(gpu, profile), memory.memory_bytes))
    for slices, memory_bytes in sizes:
        assert all(memory_bytes < more for other, more in sizes if other > slices)


@given(text=st.text(alphabet="0123456789xgb.+me", max_size=30))
def test_any_text_is_a_layout_or_an_error_that_shows_the_form(text):
    try:
        found = str(sharing.parse_layout(text))
    except LayoutError as error:
        found = str(error)
    assert "g." in found or "is not COUNTxPROFILE" in found


@pytest.mark.parametrize(("name", "layout"), sorted(BALANCED.items()))
def test_the_balanced_layouts_of_mig_parted_fit(name, layout):
    gpu = hardware.gpu(name)
    assert sharing.fits_layout(gpu, sharing.parse_layout(layout))
    assert not sharing.fits_layout(gpu, [*sharing.parse_layout(layout), sharing.parse_layout(layout)[-1]])


@pytest.mark.parametrize(("profile", "starts"), sorted(STARTS.items()))
def test_instances_begin_where_the_driver_lists_it(profile, starts):
    h100 = hardware.gpu("H100")
    assert sharing.starts_of(h100, sharing.profile_of(h100, profile)) == starts


def test_two_instances_of_four_slices_do_not_fit_and_the_reason_says_where_they_may_begin():
    h100 = hardware.gpu("H100")
    with pytest.raises(LayoutError, match=r"2x4g\.40gb does not fit on H100: 7 compute .* 4g\.40gb at 0$"):
        sharing.place_layout(h100, ["4g.40gb", "4g.40gb"])
    assert sharing.fits_layout(h100, ["4g.40gb", "3g.40gb"])
    with pytest.raises(LayoutError, match="media engines once"):
        sharing.place_layout(h100, ["1g.10gb+me", "1g.10gb+me"])
    assert sharing.parse_layout("1x1g.10gb+me+2g.20gb") == ("1g.10gb+me", "2g.20gb")


def test_a_slice_is_listed_or_derived_and_says_which():
    listed = sharing.slice_memory(hardware.gpu("H100"), "1g.10gb")
    assert listed is not None
    assert (listed.memory_bytes, listed.basis) == (int(9.75 * GIB), Basis.LISTED)
    derived = sharing.slice_memory(hardware.gpu("H200"), "1g.18gb")
    assert derived is not None
    assert (derived.memory_bytes, derived.basis) == (int(139 * GIB) // 8, Basis.DERIVED)
    assert "eighths" in derived.source


@pytest.mark.parametrize("name", WITHOUT_MIG)
def test_a_gpu_without_mig_has_no_slices_and_names_those_that_have_them(name):
    gpu = hardware.gpu(name)
    assert not any(way.has_slices for way in sharing.ways_of(gpu))
    with pytest.raises(LayoutError, match=rf"{name} has no MIG.*GPUs with MIG: A100-40"):
        sharing.profile_of(gpu, "1g.10gb")


def test_a_mistyped_profile_is_answered_with_the_nearest():
    with pytest.raises(LayoutError, match=r"H100 has no MIG profile '1g\.40gb'; did you mean '4g\.40gb'\?"):
        sharing.profile_of(hardware.gpu("H100"), "1g.40gb")


def test_every_way_states_its_isolation_limits_and_source():
    facts = sharing.way_facts()
    assert set(facts) == set(SharingWay)
    assert all(item.source and item.limits for item in facts.values())
    hard = {way for way in SharingWay if sharing.isolation_of(way).is_hardware}
    assert hard == {SharingWay.EXCLUSIVE, SharingWay.MIG, SharingWay.DYNAMIC_SLICES}
    assert sharing.isolation_of(SharingWay.TIME_SLICING).memory is Degree.NONE
    assert sharing.isolation_of(SharingWay.MPS).fault is Degree.NONE
    assert facts[SharingWay.MPS].max_processes == 48
    assert {way for way, item in facts.items() if item.max_gpus_per_replica is None} == {SharingWay.EXCLUSIVE}


def test_a_manifest_asks_for_dynamic_slices_as_mig():
    assert {way.mode for way in SharingWay} == set(hardware.SharingMode)
    assert SharingWay.DYNAMIC_SLICES.mode is hardware.SharingMode.MIG


def test_the_context_of_a_process_is_between_one_and_two_gib():
    assert GIB <= sharing.context_bytes() <= 2 * GIB
