"""Links of Lustre file systems to buckets: read-only weights, folders that don't overlap, ports that are open."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud import lustre_links
from fleet.cloud.lustre_links import EVENTS, Link, Linked, link_findings, links_findings
from fleet.cloud.lustre_ports import (
    EFA_TRAFFIC,
    EVERY_PROTOCOL,
    LUSTRE_PORTS,
    PORTS,
    SELF,
    Opening,
    port_findings,
)

GOOD = Link("/weights", "s3://weights/")
EVENT_SETS = st.lists(st.sampled_from(EVENTS), unique=True).map(tuple)


def ids(findings) -> list[str]:
    return [finding.rule.id for finding in findings]


@given(imports=EVENT_SETS, exports=EVENT_SETS)
def test_whatever_a_link_does_weights_stay_read_only(imports, exports):
    found = ids(link_findings(replace(GOOD, imports=imports, exports=exports)))
    assert (lustre_links.READ_ONLY.id in found) == (bool(exports) or "DELETED" in imports)


@given(folder=st.text("ab/", min_size=1, max_size=8).map(lambda text: f"/{text}"))
def test_a_folder_overlaps_itself_the_root_and_what_lies_in_it(folder):
    for other in (folder, "/", f"{folder}/deeper"):
        found = ids(links_findings([Link(folder, "s3://one/"), Link(other, "s3://two/")], Linked()))
        assert lustre_links.LINK_PATH.id in found


def test_folders_that_only_begin_alike_do_not_overlap():
    assert ids(links_findings([Link("/ns1", "s3://one/"), Link("/ns12", "s3://two/")], Linked())) == []


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"folder": "weights"}, lustre_links.LINK_PATH),
        ({"folder": ""}, lustre_links.LINK_PATH),
        ({"bucket": "weights"}, lustre_links.LINK_SOURCE),
        ({"bucket": "s3://"}, lustre_links.LINK_SOURCE),
        ({"imports": ("NEW", "GONE")}, lustre_links.LINK_EVENTS),
        ({"imports": ("NEW", "NEW")}, lustre_links.LINK_EVENTS),
        ({"imports": ("NEW", "CHANGED", "DELETED")}, lustre_links.READ_ONLY),
        ({"exports": ("NEW",)}, lustre_links.READ_ONLY),
    ],
)
def test_one_fault_of_a_link_gives_exactly_its_rule(changes, rule):
    assert ids(link_findings(replace(GOOD, **changes))) == [rule.id]


def test_a_link_of_new_and_changed_objects_is_clean():
    assert ids(link_findings(GOOD)) == []
    assert ids(links_findings([GOOD], Linked(version="2.15"))) == []


@pytest.mark.parametrize(
    "system",
    [
        Linked(deployment="SCRATCH_1"),
        Linked(storage="INTELLIGENT_TIERING"),
        Linked(deployment="PERSISTENT_1", version="2.10"),
        Linked(copies_tags_to_backups=True),
    ],
)
def test_a_file_system_that_can_not_be_linked_is_told_so_only_when_it_is(system):
    assert ids(links_findings([GOOD], system)) == [lustre_links.LINKABLE.id]
    assert ids(links_findings([], system)) == []


def test_one_place_is_linked_once_and_a_file_system_has_at_most_eight_links():
    twice = [Link("/a", "s3://weights/x/"), Link("/b", "s3://weights/x")]
    assert ids(links_findings(twice, Linked())) == [lustre_links.LINK_SOURCE.id]
    nine = [Link(f"/a{number}", f"s3://weights/{number}/") for number in range(9)]
    assert ids(links_findings(nine, Linked())) == [lustre_links.LINKABLE.id]


def opened(peer, *ranges) -> list[Opening]:
    return [Opening(peer, "tcp", first, last) for first, last in ranges]


@given(first=st.integers(0, 1100), last=st.integers(0, 1100))
def test_a_range_of_ports_is_enough_exactly_when_it_holds_all_of_lustres(first, last):
    openings = opened(SELF, (first, last)) + opened("sg-1", *LUSTRE_PORTS)
    assert (ids(port_findings(openings, has_efa=False)) == []) == (first <= 988 and last >= 1023)


def test_1021_to_1023_is_narrower_than_what_lustre_needs():
    openings = opened(SELF, (988, 988), (1021, 1023)) + opened("sg-1", *LUSTRE_PORTS)
    (finding,) = port_findings(openings, has_efa=False)
    assert finding.rule is PORTS
    assert finding.message == "TCP 1018-1023 is not open from the file system itself"


def test_the_nodes_have_to_come_in_as_well_as_the_file_system():
    assert ids(port_findings(opened(SELF, *LUSTRE_PORTS), has_efa=False)) == [PORTS.id]
    assert ids(port_findings(opened("sg-1", *LUSTRE_PORTS), has_efa=False)) == [PORTS.id]
    assert ids(port_findings([], has_efa=False)) == [PORTS.id, PORTS.id]


@pytest.mark.parametrize("missing", [True, False])
def test_efa_needs_all_traffic_from_and_to_itself_and_the_way_out_to_everywhere_is_not_that(missing):
    way = Opening(SELF, EVERY_PROTOCOL, is_ingress=not missing)
    world = Opening("0.0.0.0/0", EVERY_PROTOCOL, is_ingress=False)
    openings = [*opened(SELF, *LUSTRE_PORTS), *opened("sg-1", *LUSTRE_PORTS), way, world]
    assert ids(port_findings(openings, has_efa=True)) == [EFA_TRAFFIC.id]
    assert ids(port_findings(openings, has_efa=False)) == []
    both = [*openings, replace(way, is_ingress=missing)]
    assert ids(port_findings(both, has_efa=True)) == []
