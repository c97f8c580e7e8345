"""The network's rules: ranges that never overlap or move, subnets that hold what stands in them, who comes in."""

from ipaddress import IPv4Network, collapse_addresses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import hardware
from fleet.cloud.interfaces import efa_layout
from fleet.cloud.lustre_ports import EVERY_PROTOCOL, SELF, Opening
from fleet.cloud.network import (
    Endpoint,
    NodeDemand,
    address_interfaces,
    efa_self_findings,
    endpoint_findings,
    gpu_node_pods,
    ingress_findings,
    node_subnet_findings,
    subnet_findings,
    subnet_plan,
    usable_addresses,
)

LETTERS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=7, unique=True)
PREFIXES = st.integers(16, 22)
ALL_IN = Opening(SELF, EVERY_PROTOCOL)
ALL_OUT = Opening(SELF, EVERY_PROTOCOL, is_ingress=False)


def zones(letters):
    return [f"eu-central-1{letter}" for letter in letters]


def ids(findings):
    return [finding.rule.id for finding in findings]


@given(letters=LETTERS, prefix=PREFIXES)
def test_subnets_lie_in_the_network_and_overlap_nowhere(letters, prefix):
    network = IPv4Network((int(IPv4Network("10.0.0.0/8").network_address), prefix))
    plans = subnet_plan(network, zones(letters))
    found = [subnet for plan in plans for subnet in (plan.private, plan.public)]
    assert all(subnet.subnet_of(network) and subnet.prefixlen <= 28 for subnet in found)
    assert sum(subnet.num_addresses for subnet in found) == sum(
        item.num_addresses for item in collapse_addresses(found)
    )


@given(letters=LETTERS, prefix=PREFIXES)
def test_a_zone_keeps_its_ranges_whatever_other_zones_there_are(letters, prefix):
    network = IPv4Network(f"10.0.0.0/{prefix}")
    every = {plan.zone: plan for plan in subnet_plan(network, zones("abcdefg"))}
    assert all(every[plan.zone] == plan for plan in subnet_plan(network, zones(letters)))


def test_a_network_that_is_too_small_and_a_letter_without_place_are_refused():
    with pytest.raises(ValueError, match="take /22 or larger"):
        subnet_plan(IPv4Network("10.0.0.0/23"), zones("a"))
    with pytest.raises(ValueError, match="the zone us-east-1h has no place"):
        subnet_plan(IPv4Network("10.0.0.0/16"), ["us-east-1h"])


@given(nodes=st.integers(0, 500), interfaces=st.integers(1, 33), pods=st.integers(1, 110), delegates=st.booleans())
def test_a_subnet_that_holds_some_nodes_holds_fewer(nodes, interfaces, pods, delegates):
    subnet = IPv4Network("10.0.0.0/19")
    demand = NodeDemand("pool", nodes, interfaces, pods)
    if not list(subnet_findings(subnet, [demand], prefix_delegation=delegates)):
        fewer = NodeDemand("pool", nodes // 2, interfaces, pods)
        assert not list(subnet_findings(subnet, [fewer], prefix_delegation=delegates))


@given(pods=st.integers(1, 110), delegates=st.booleans())
def test_a_node_takes_an_address_for_each_pod_at_least(pods, delegates):
    assert NodeDemand("x", 1, 1, pods).addresses_per_node(prefix_delegation=delegates) > pods


def test_thirty_two_efa_interfaces_cost_an_address_each_and_efa_only_ones_none():
    shape = hardware.instance("p5.48xlarge")
    layout = efa_layout(shape)
    assert address_interfaces(layout) == 1
    with_ip = [item if item.type == "interface" else type(item)(item.card, item.device, "efa") for item in layout]
    assert address_interfaces(with_ip) == 33
    assert address_interfaces([]) == 1
    subnet, nodes = IPv4Network("10.0.0.0/24"), 4
    pods = gpu_node_pods(shape.gpus)
    lean, wide = NodeDemand("h100", nodes, 1, pods), NodeDemand("h100", nodes, 33, pods)
    assert ids(subnet_findings(subnet, [lean], prefix_delegation=True)) == []
    (finding,) = subnet_findings(subnet, [wide], prefix_delegation=True)
    assert finding.rule.id == "subnet-too-small"
    assert finding.message == (
        "10.0.0.0/24 has 251 addresses, its nodes and pods may take 356; the most by h100: 4 nodes with 81 each"
    )


def test_without_prefix_delegation_whole_interfaces_are_filled():
    demand = NodeDemand("h100", 1, 1, 24)
    assert demand.addresses_per_node(prefix_delegation=True) == 1 + 3 * 16
    assert demand.addresses_per_node(prefix_delegation=False) == 2 * 50


def test_a_subnet_without_nodes_needs_nothing_and_the_cloud_keeps_five_addresses():
    assert ids(subnet_findings(IPv4Network("10.0.0.0/28"), [], prefix_delegation=True)) == []
    assert usable_addresses(IPv4Network("10.0.0.0/28")) == 11
    assert usable_addresses(IPv4Network("10.0.0.0/32")) == 0


def test_pods_of_a_gpu_node_are_those_that_its_taint_lets_in():
    assert gpu_node_pods(8) == 24
    assert gpu_node_pods(8, shares_per_gpu=48) == 110


@pytest.mark.parametrize(
    ("endpoint", "expected"),
    [
        (Endpoint(is_public=False, is_private=True), []),
        (Endpoint(is_public=True, is_private=True, public_cidrs=("203.0.113.0/24",)), []),
        (Endpoint(is_public=True, is_private=True), ["cluster-endpoint-open"]),
        (Endpoint(is_public=True, is_private=True, public_cidrs=("0.0.0.0/0",)), ["cluster-endpoint-open"]),
        (
            Endpoint(is_public=True, is_private=True, public_cidrs=("0.0.0.0/1", "128.0.0.0/1")),
            ["cluster-endpoint-open"],
        ),
        (
            Endpoint(is_public=True, is_private=False, public_cidrs=("203.0.113.0/24",)),
            ["cluster-endpoint-not-private"],
        ),
    ],
)
def test_an_endpoint_is_for_those_alone_who_are_named(endpoint, expected):
    assert ids(endpoint_findings(endpoint)) == expected


@pytest.mark.parametrize("peer", ["0.0.0.0/0", "::/0", "128.0.0.0/1"])
def test_a_group_that_lets_everybody_in_is_found_and_one_that_lets_out_is_not(peer):
    opening = Opening(peer, "tcp", 443, 443)
    (finding,) = ingress_findings("web", [opening])
    assert finding.message == f"the security group web lets {peer} in on tcp 443-443"
    assert "on everything" in next(ingress_findings("web", [Opening(peer, EVERY_PROTOCOL)])).message
    assert ids(ingress_findings("web", [Opening(peer, EVERY_PROTOCOL, is_ingress=False)])) == []
    assert ids(ingress_findings("web", [Opening("10.0.0.0/8", "tcp"), ALL_IN, Opening("sg-1", "tcp")])) == []


@pytest.mark.parametrize(
    ("openings", "missing"),
    [
        ([ALL_IN, ALL_OUT], 0),
        ([ALL_IN], 1),
        ([ALL_IN, Opening("0.0.0.0/0", EVERY_PROTOCOL, is_ingress=False)], 1),  # aws-parallelcluster#3590
        ([ALL_OUT], 1),
        ([], 2),
        ([Opening(SELF, "tcp"), ALL_OUT], 1),
    ],
)
def test_efa_needs_all_traffic_with_itself_in_and_out(openings, missing):
    assert ids(efa_self_findings("efa", openings)) == ["efa-security-group-self"] * missing


def test_nodes_stand_in_subnets_without_public_addresses():
    assert ids(node_subnet_findings("public-a", maps_public_ip=True)) == ["nodes-in-public-subnet"]
    assert ids(node_subnet_findings("private-a", maps_public_ip=False)) == []
