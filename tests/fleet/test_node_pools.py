"""Node pools: any wish is a pool or a message; then each message; then real instance types."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fleet import hardware
from fleet.node_pools import NodePool
from fleet.sharing import SharingWay, fits_layout

DAY = date(2030, 1, 1)
P5 = {"name": "h100", "instance_type": "p5.48xlarge"}
BLOCK = {"purchase": "capacity-block", "max_nodes": 2, "ends_on": DAY}


@given(
    instance_type=st.sampled_from(sorted(hardware.instance_types())),
    purchase=st.sampled_from(["on-demand", "spot", "capacity-block"]),
    sharing=st.sampled_from(list(SharingWay)),
    profile=st.none() | st.sampled_from(["1g.10gb", "1g.18gb", "7g.80gb"]),
    max_nodes=st.none() | st.integers(min_value=0, max_value=9),
    ends_on=st.none() | st.just(DAY),
)
def test_a_pool_that_is_accepted_can_be_bought_and_shared_as_it_says(
    instance_type, purchase, sharing, profile, max_nodes, ends_on
):
    wish = {"instance_type": instance_type, "purchase": purchase, "sharing": sharing, "mig_profile": profile}
    try:
        pool = NodePool.model_validate({"name": "p", "max_nodes": max_nodes, "ends_on": ends_on} | wish)
    except ValidationError:
        return
    assert pool.purchase in pool.instance.purchase_classes
    assert (pool.purchase == "capacity-block") == (pool.ends_on is not None)
    assert (pool.sharing is SharingWay.MIG) == (pool.mig_profile is not None)
    if pool.mig_profile is not None:
        assert fits_layout(pool.gpu, [pool.mig_profile])
    assert pool.gpu.memory_bytes is not None
    assert pool.gpu.memory_bytes <= pool.instance.gpu_memory_mib * hardware.BYTES_PER_MIB


@given(text=st.text(max_size=20))
def test_an_unknown_instance_type_is_named_with_known_ones(text):
    if text not in hardware.instance_types():
        with pytest.raises(ValidationError, match="instance_type"):
            NodePool(name="p", instance_type=text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"instance_type": "p5.48xlage"}, "'p5.48xlage' is not known; did you mean 'p5.48xlarge'?"),
        (
            {"instance_type": "g6.xlarge", **BLOCK},
            "g6.xlarge is not sold as 'capacity-block'; it is sold as on-demand, spot",
        ),
        (
            {"instance_type": "g6.xlarge", "sharing": "mig", "mig_profile": "1g.10gb"},
            "which L4 does not have; it can be",
        ),
        ({"instance_type": "g6e.xlarge", "sharing": "dynamic-slices"}, "needs MIG, which L40S does not have"),
        ({"sharing": "mig"}, "sharing 'mig' needs a mig_profile; H100 has 1g.10gb"),
        ({"sharing": "mig", "mig_profile": "1g.5gb"}, "H100 has no MIG profile '1g.5gb'; did you mean"),
        ({"sharing": "mps", "mig_profile": "1g.10gb"}, "belongs to sharing 'mig', which is 'mps'; leave it out"),
        ({"sharing": "mgi"}, "Input should be 'exclusive', 'mig', 'dynamic-slices', 'mps' or 'time-slicing'"),
        ({"purchase": "capacity-block", "max_nodes": 1}, "needs ends_on"),
        ({"purchase": "capacity-block", "ends_on": DAY}, "needs max_nodes"),
        ({"ends_on": DAY}, "belongs to purchase 'capacity-block', which is 'on-demand'"),
        ({"max_nodes": -1}, "greater than or equal to 0"),
        ({"name": "H100 pool"}, "name"),
    ],
)
def test_a_wrong_pool_says_what_would_be_right(change, message):
    with pytest.raises(ValidationError) as refused:
        NodePool.model_validate(P5 | change)
    assert message in str(refused.value)


def test_a_capacity_block_covers_its_last_day_and_no_further():
    pool = NodePool.model_validate(P5 | BLOCK)
    assert not pool.has_ended(DAY)
    assert pool.has_ended(DAY + timedelta(days=1))
    assert not NodePool.model_validate(P5).has_ended(date.max)


def test_an_instance_with_a_part_of_a_gpu_offers_that_part():
    pool = NodePool(name="eighths", instance_type="g6f.large")
    assert pool.gpu.name == "L4"
    assert pool.gpu.memory_bytes == 2861 * hardware.BYTES_PER_MIB


def test_a_pool_shares_as_it_says_and_not_otherwise():
    cut = NodePool.model_validate(P5 | {"sharing": "mig", "mig_profile": "3g.40gb"}).share(context_bytes=0)
    assert [profile.name for profile in cut.profiles] == ["3g.40gb"]
    free = NodePool.model_validate(P5 | {"sharing": "dynamic-slices"}).share(context_bytes=0)
    assert len(free.profiles) == 6
    assert free.ways == (SharingWay.DYNAMIC_SLICES,)
