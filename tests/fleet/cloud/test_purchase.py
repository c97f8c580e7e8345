"""How nodes are bought: every instance of the table, then the public bug reports."""

from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.cloud import purchase
from fleet.cloud.purchase import Buying
from fleet.spec import PURCHASES

INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
WAYS = st.sampled_from(PURCHASES)
ZONES = st.lists(st.sampled_from(["us-east-1a", "us-east-1b", "us-east-1c"]), min_size=1, max_size=3)
RESERVATION = "cr-0123456789abcdef0"


def ids(findings):
    return [finding.rule.id for finding in findings]


def judged(buying):
    return ids([*purchase.target_findings(buying), *purchase.market_findings(buying)])


@given(way=WAYS)
def test_every_way_bought_as_it_should_be_is_fine(way):
    reservation = RESERVATION if way == "capacity-block" else None
    assert judged(Buying.of(way, reservation)) == []


@given(name=INSTANCES, way=WAYS)
def test_an_instance_is_bought_in_the_ways_in_which_it_is_sold(name, way):
    shape = hardware.instance(name)
    found = ids(purchase.sold_findings(shape, Buying.of(way, None)))
    assert found == ([] if way in shape.purchase_classes else ["purchase-not-sold"])


@given(name=INSTANCES, strategy=st.sampled_from(["cluster", "partition", "spread", "heap"]))
def test_a_placement_strategy_is_one_that_the_instance_knows(name, strategy):
    shape = hardware.instance(name)
    assert bool(ids(purchase.strategy_findings(shape, strategy))) == (strategy not in shape.placement_strategies)


@given(zones=ZONES, reservation=st.sampled_from([None, RESERVATION]))
def test_a_cluster_placement_group_has_one_zone_and_no_reservation(zones, reservation):
    found = set(ids(purchase.placement_findings("cluster", zones=zones, reservation_id=reservation)))
    expected = {"placement-group-with-reservation"} if reservation else set()
    assert found == expected | ({"placement-group-zones"} if len(set(zones)) > 1 else set())
    assert not list(purchase.placement_findings(None, zones=zones, reservation_id=reservation))


@given(zones=ZONES, efa=st.booleans())
def test_efa_stays_in_one_zone(zones, efa):
    found = ids(purchase.efa_zone_findings(zones, has_efa=efa))
    assert found == (["efa-zones"] if efa and len(set(zones)) > 1 else [])


@given(zones=ZONES)
def test_nodes_of_a_reservation_stand_in_its_zone_exactly(zones):
    found = ids(purchase.reservation_zone_findings("us-east-1a", zones))
    assert found == ([] if set(zones) == {"us-east-1a"} else ["reservation-zone"])


def test_a_partition_group_may_have_several_zones():
    assert not list(purchase.placement_findings("partition", zones=["a", "b"], reservation_id=None))


def test_a_lost_reservation_target_of_a_capacity_block_is_found_alone():
    assert judged(Buying.of("capacity-block", None)) == ["capacity-block-target"]
    assert judged(Buying("CAPACITY_BLOCK", "capacity-block", "")) == ["capacity-block-target"]


def test_capacity_type_and_market_type_that_differ_are_found_alone():
    assert judged(Buying("ON_DEMAND", "capacity-block", RESERVATION)) == ["capacity-block-market"]
    assert judged(Buying("CAPACITY_BLOCK", None, RESERVATION)) == ["capacity-block-market"]
    assert judged(Buying("CAPACITY_BLOCK", "spot", RESERVATION)) == ["capacity-block-market"]


def test_spot_has_no_reservation_and_on_demand_may_have_one():
    assert judged(Buying.of("spot", RESERVATION)) == ["reservation-with-spot"]
    assert judged(Buying.of("on-demand", RESERVATION)) == []


def test_the_instance_type_of_a_capacity_block_stands_in_the_template():
    block = Buying.of("capacity-block", RESERVATION)
    wrong = purchase.block_type_findings(block, template_type=None, group_types=["p5.48xlarge"])
    assert ids(wrong) == ["capacity-block-instance-type"]
    assert not list(purchase.block_type_findings(block, template_type="p5.48xlarge", group_types=()))
    assert not list(purchase.block_type_findings(Buying(), template_type=None, group_types=["g6.xlarge"]))


def test_an_upgrade_of_a_capacity_block_with_nodes_is_noted():
    block = Buying.of("capacity-block", RESERVATION)
    assert ids(purchase.upgrade_findings(block, is_upgrade=True, desired_nodes=2)) == ["capacity-block-upgrade"]
    assert not list(purchase.upgrade_findings(block, is_upgrade=True, desired_nodes=0))
    assert not list(purchase.upgrade_findings(block, is_upgrade=False, desired_nodes=2))
    assert not list(purchase.upgrade_findings(Buying(), is_upgrade=True, desired_nodes=2))
