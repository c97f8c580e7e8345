"""What is found in pools before anything is registered: nothing in those that work, one thing for each mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from infra.pool_findings import pool_findings
from infra.zone_groups import zones_of
from tests.infra.stacks import IMAGE, RESERVATION, VARIANTS, ZONE, ZONES, pool

INSTANCES = st.sampled_from(sorted(hardware.instance_types()))
BOTTLEROCKET = {**IMAGE, "family": "bottlerocket"}
SNAPSHOT = "snap-0123456789abcdef0"  # invented


def ids(found, kubernetes="1.34", zones=ZONES):
    known = {RESERVATION: ZONE}
    findings = pool_findings(found, kubernetes=kubernetes, zones=zones_of(found, zones), reservation_zones=known)
    return [finding.rule.id for finding in findings]


@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_the_pools_of_every_variant_break_no_rule(variant):
    config = VARIANTS[variant]
    for found in config.pools:
        assert ids(found, config.cluster.kubernetes, config.network.zones) == []


@given(name=INSTANCES, efa=st.booleans())
def test_every_instance_makes_a_pool_and_with_efa_where_it_has_some(name, efa):
    found = pool(name="x", instance_type=name, efa=efa, placement_group=efa)
    wrong = efa and not hardware.instance(name).supports_efa
    assert ids(found) == (["efa-on-instance-without"] if wrong else [])


@pytest.mark.parametrize(("fields", "expected"), [
    ({"image": {}}, "ami-release-unpinned"),
    ({"preload": {"data_volume_snapshot": SNAPSHOT}}, "image-preload"),
    ({"sharing": "time-slicing"}, "gpu-shares"),
    ({"time_slices": 4}, "gpu-shares"),
    ({"sharing": "mps", "time_slices": 49}, "gpu-shares"),
    ({"sharing": "mps", "time_slices": 4, "allocation": "dra"}, "gpu-shares"),
    ({"sharing": "mig", "mig_profile": "1g.10gb", "image": BOTTLEROCKET}, "mig-on-bottlerocket"),
    ({"sharing": "dynamic-slices"}, "dynamic-slices-allocation"),
    ({"purchase": "capacity-block", "ends_on": "2099-01-01", "zone": ZONE}, "capacity-block-target"),
    ({"reservation_id": RESERVATION, "zone": ZONES[1]}, "reservation-zone"),
    ({"reservation_id": RESERVATION, "zone": ZONE, "placement_group": True}, "placement-group-with-reservation"),
    ({"purchase": "spot", "reservation_id": RESERVATION, "zone": ZONE}, "reservation-with-spot"),
    ({"placement_group": True}, "placement-group-zones"),
    ({"labels": {"team": "two words"}}, "node-label"),
])  # fmt: skip
def test_one_mistake_is_one_finding(fields, expected):
    assert ids(pool(name="x", instance_type="p5.48xlarge", **fields)) == [expected]


def test_slices_on_demand_want_their_kubernetes():
    found = pool(name="x", instance_type="p5.48xlarge", sharing="dynamic-slices", allocation="dra")
    assert ids(found) == []
    assert ids(found, "1.33") == ["dynamic-slices-allocation"]
