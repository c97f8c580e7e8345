"""Packing small deployments: laws over any fleet, then an L4 that three models share."""

import json
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet import hardware, sharing
from fleet.gpu_share import GpuShare
from fleet.packing import PackingItem, pack
from fleet.sharing import SharingWay

GIB = hardware.BYTES_PER_GIB
GPUS = st.sampled_from(sorted(hardware.gpu_models()))
WAYS = st.lists(st.sampled_from(list(SharingWay)), min_size=1, max_size=5, unique=True)


@st.composite
def item_lists(draw, *, most=7, replicas=2):
    sizes = st.integers(min_value=0, max_value=100 * GIB)
    count = draw(st.integers(min_value=0, max_value=most))
    return [
        PackingItem(
            name=f"model-{index}",
            memory_bytes=draw(sizes) // draw(st.sampled_from([1, 8, 32])),
            replicas=draw(st.integers(min_value=1, max_value=replicas)),
            needs_hardware_isolation=draw(st.booleans()),
        )
        for index in range(count)
    ]


def share_of(gpu, ways, context_gib=1):
    return GpuShare(hardware.gpu(gpu), tuple(ways), context_bytes=context_gib * GIB)


@given(items=item_lists(), gpu=GPUS, ways=WAYS, context_gib=st.integers(min_value=0, max_value=2))
def test_every_replica_is_placed_once_or_its_deployment_is_rejected_once(items, gpu, ways, context_gib):
    found = pack(items, share_of(gpu, ways, context_gib))
    placed = [(item.name, item.replica) for one in found.gpus for item in one.replicas]
    refused = {item.name for item in found.rejected}
    assert len(placed) == len(set(placed))
    expected = {(item.name, r) for item in items if item.name not in refused for r in range(item.replicas)}
    assert set(placed) == expected
    assert len(refused) == len(found.rejected)
    assert all(item.reason.rule and item.reason.message for item in found.rejected)


@given(items=item_lists(), gpu=GPUS, ways=WAYS, context_gib=st.integers(min_value=0, max_value=2))
def test_no_gpu_holds_more_than_it_has_and_every_context_counts(items, gpu, ways, context_gib):
    share = share_of(gpu, ways, context_gib)
    needs = {item.name: item.memory_bytes + context_gib * GIB for item in items}
    for one in pack(items, share).gpus:
        assert one.way in ways
        assert one.used_bytes == sum(needs[item.name] for item in one.replicas)
        assert one.used_bytes < one.capacity_bytes
        assert one.way is not SharingWay.EXCLUSIVE or len(one.replicas) == 1
        assert one.way is not SharingWay.MPS or len(one.replicas) <= 48
        if one.way.has_slices:
            cuts = [item.slice for item in one.replicas]
            assert sharing.place_layout(share.model, [cut.profile for cut in cuts]) == tuple(sorted(cuts))
            for item in one.replicas:
                assert item.need_bytes < sharing.slice_memory(share.model, item.slice.profile).memory_bytes


@given(items=item_lists(), gpu=GPUS, ways=WAYS)
def test_who_needs_hardware_isolation_never_shares_by_mps_or_time_slicing(items, gpu, ways):
    isolated = {item.name for item in items if item.needs_hardware_isolation}
    for one in pack(items, share_of(gpu, ways)).gpus:
        if one.way in {SharingWay.MPS, SharingWay.TIME_SLICING}:
            assert isolated.isdisjoint(item.name for item in one.replicas)


@given(items=item_lists(), gpu=GPUS, ways=WAYS)
def test_packing_never_takes_more_gpus_than_one_each_nor_fewer_than_the_memory_needs(items, gpu, ways):
    found = pack(items, share_of(gpu, ways))
    assert found.lower_bound_gpus <= len(found.gpus) <= found.replicas
    assert found.saved_gpus >= 0
    total = sum(one.used_bytes for one in found.gpus)
    assert all(total <= found.lower_bound_gpus * one.capacity_bytes for one in found.gpus)


@given(items=item_lists(), gpu=GPUS, ways=WAYS, data=st.data())
def test_the_order_of_the_deployments_does_not_matter(items, gpu, ways, data):
    shuffled = data.draw(st.permutations(items))
    first = pack(items, share_of(gpu, ways)).to_document()
    assert pack(shuffled, share_of(gpu, ways)).to_document() == first
    assert json.loads(json.dumps(first, allow_nan=False)) == first


@given(items=item_lists(), gpu=GPUS)
def test_another_way_of_sharing_never_rejects_more(items, gpu):
    few = pack(items, share_of(gpu, [SharingWay.EXCLUSIVE]))
    many = pack(items, share_of(gpu, [SharingWay.EXCLUSIVE, SharingWay.MPS, SharingWay.MIG]))
    assert {item.name for item in many.rejected} <= {item.name for item in few.rejected}
    assert len(few.gpus) == few.replicas


def fewest_by_trying_all(names, fits):
    """The fewest groups over all ways to part a set: every part that holds the first, then the rest."""
    if not names:
        return 0
    first, others = names[0], names[1:]
    parts = (part for size in range(len(others) + 1) for part in combinations(others, size))
    fitting = (part for part in parts if fits([first, *part]))
    return min(1 + fewest_by_trying_all([n for n in others if n not in part], fits) for part in fitting)


@given(items=item_lists(most=6, replicas=1), gpu=st.sampled_from(["L4", "H100", "A100-40"]))
@settings(max_examples=50)
def test_few_deployments_are_packed_as_tightly_as_can_be(items, gpu):
    share = share_of(gpu, [SharingWay.EXCLUSIVE, SharingWay.MIG, SharingWay.MPS])
    found = pack(items, share)
    refused = {item.name for item in found.rejected}
    by_name = {item.name: item for item in items if item.name not in refused}

    def fits(names):
        group = [by_name[name] for name in names]
        needs = [item.memory_bytes + GIB for item in group]
        shared = sum(needs) < share.capacity_bytes and not any(item.needs_hardware_isolation for item in group)
        profiles = [share.profile_for(need) for need in needs]
        sliced = all(profiles) and sharing.fits_layout(share.model, profiles)
        return len(group) == 1 or shared or sliced

    assert found.is_optimal
    assert len(found.gpus) == fewest_by_trying_all(sorted(by_name), fits)


def test_three_small_models_share_an_l4_by_mps_and_the_answer_says_the_saving():
    models = [PackingItem(name, int(size * GIB)) for name, size in (("embed", 2.0), ("rerank", 3.0), ("guard", 9.0))]
    share = GpuShare.of(hardware.gpu("L4"), context_bytes=sharing.context_bytes())
    found = pack(models, share)
    assert [one.way for one in found.gpus] == [SharingWay.MPS]
    assert (found.replicas, found.saved_gpus, found.is_optimal) == (3, 2, True)
    isolated = [PackingItem(item.name, item.memory_bytes, needs_hardware_isolation=True) for item in models]
    apart = pack(isolated, share)
    assert [one.way for one in apart.gpus] == [SharingWay.EXCLUSIVE] * 3
    assert apart.saved_gpus == 0


def test_tenants_that_must_be_apart_share_an_h100_by_slices():
    models = [PackingItem(f"tenant-{n}", 7 * GIB, needs_hardware_isolation=True) for n in range(8)]
    found = pack(models, GpuShare.of(hardware.gpu("H100"), context_bytes=GIB))
    assert sorted(len(one.replicas) for one in found.gpus) == [1, 7]
    sliced = max(found.gpus, key=lambda one: len(one.replicas))
    assert sliced.way is SharingWay.MIG
    assert [item.slice.start for item in sliced.replicas] == list(range(7))


def test_a_mixed_layout_is_found():
    sizes = {"tiny-a": 7, "tiny-b": 7, "small": 16, "middle": 35}
    models = [PackingItem(name, size * GIB, needs_hardware_isolation=True) for name, size in sizes.items()]
    found = pack(models, GpuShare.of(hardware.gpu("H100"), context_bytes=GIB))
    assert len(found.gpus) == 1
    assert {item.name: item.slice.profile for item in found.gpus[0].replicas} == {
        "middle": "3g.40gb",
        "small": "1g.20gb",
        "tiny-a": "1g.10gb",
        "tiny-b": "1g.10gb",
    }


def test_a_pool_cut_into_one_profile_offers_no_other():
    share = GpuShare(hardware.gpu("H100"), (SharingWay.MIG,), profile="1g.10gb", context_bytes=GIB)
    found = pack([PackingItem("fits", 8 * GIB, replicas=9), PackingItem("large", 9 * GIB)], share)
    assert sorted(len(one.replicas) for one in found.gpus) == [2, 7]
    (refused,) = found.rejected
    assert (refused.name, refused.reason.rule) == ("large", "memory")
    assert "needs 10.00 GiB" in refused.reason.message
    assert "holds 9.75 GiB" in refused.reason.message


@pytest.mark.parametrize(
    ("item", "gpu", "ways", "rule", "message"),
    [
        (PackingItem("a", 22 * GIB), "L4", [SharingWay.MPS], "memory", "one L4 holds 22.35 GiB"),
        (
            PackingItem("a", GIB, needs_hardware_isolation=True),
            "L4",
            [SharingWay.MPS, SharingWay.TIME_SLICING],
            "isolation",
            "mps, time-slicing does not give",
        ),
        (PackingItem("a", 30 * GIB), "A30", [SharingWay.MIG], "memory", "one A30 holds 23.50 GiB"),
    ],
)
def test_a_rejection_has_its_rule_and_numbers(item, gpu, ways, rule, message):
    (refused,) = pack([item], share_of(gpu, ways)).rejected
    assert refused.reason.rule == rule
    assert message in refused.reason.message
    assert refused.reason.evidence["need_bytes"] == item.memory_bytes + GIB


def test_at_most_48_processes_share_by_mps():
    found = pack([PackingItem("tiny", 1, replicas=60)], share_of("H100", [SharingWay.MPS], 0))
    assert sorted(len(one.replicas) for one in found.gpus) == [12, 48]


def test_names_are_ids_and_sizes_are_sizes():
    with pytest.raises(ValueError, match="two deployments are called 'a'"):
        pack([PackingItem("a", 1), PackingItem("a", 2)], share_of("L4", [SharingWay.MPS]))
    with pytest.raises(ValueError, match="a: -1 bytes and 1 replicas"):
        PackingItem("a", -1)
