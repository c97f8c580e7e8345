"""Whoever needs a GPU alone gets no share of one that has the name of the whole."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud.isolation import shared_name_findings
from fleet.cloud.labels import GPU_RESOURCE, SHARED_GPU_RESOURCE
from fleet.cloud.objects import PodContainer, PodOwner

ALONE = PodOwner("a/Deployment/b", (PodContainer("c", None, limits={GPU_RESOURCE: "1"}),), needs_isolation=True)
POOLS = st.frozensets(st.sampled_from(["h100", "l4", "b200"]))


@given(POOLS, POOLS)
def test_pods_are_at_risk_on_the_pools_that_share(named, sharing):
    owner = replace(ALONE, pools=tuple(named))
    found = list(shared_name_findings(owner, sharing))
    assert bool(found) == bool(sharing & named if named else sharing)


@given(POOLS)
def test_who_needs_no_isolation_or_asks_for_a_share_is_at_no_risk(sharing):
    assert list(shared_name_findings(replace(ALONE, needs_isolation=False), sharing)) == []
    shared = PodContainer("c", None, limits={SHARED_GPU_RESOURCE: "1"})
    assert list(shared_name_findings(replace(ALONE, containers=(shared,)), sharing)) == []
