"""The network that the program makes."""

import json
from functools import cache
from ipaddress import IPv4Network

import pytest

from fleet.cloud.network import subnet_plan
from infra.network import Network, NetworkArgs
from infra.network_endpoints import INTERFACES
from infra.stack_config import NetworkConfig
from tests.infra.recording import record
from tests.infra.stacks import DEV, PROD, REGION, ZONES

KEY = "arn:aws:kms:eu-central-1:111122223333:key/invented"


@cache
def network(config=PROD.network, *, protect=True):
    return record(lambda: Network("net", NetworkArgs(config, REGION, KEY, protect)))


def test_each_zone_has_a_private_and_a_public_subnet_of_the_plan():
    recording = network()
    for plan in subnet_plan(PROD.network.cidr, ZONES):
        for kind, cidr in (("private", plan.private), ("public", plan.public)):
            subnet = recording.one("Subnet", f"net-{kind}-{plan.zone}")
            assert subnet.inputs["cidrBlock"] == str(cidr)
            assert subnet.inputs["availabilityZone"] == plan.zone
            assert subnet.inputs["mapPublicIpOnLaunch"] is False
            assert subnet.inputs["vpcId"] == recording.one("Vpc").id


def test_load_balancers_find_their_subnets_by_tags():
    for subnet in network().of("Subnet"):
        role = "internal-elb" if "-private-" in subnet.name else "elb"
        assert subnet.inputs["tags"][f"kubernetes.io/role/{role}"] == "1"


@pytest.mark.parametrize(("config", "gateways"), [(PROD.network, 3), (DEV.network, 1)])
def test_private_subnets_go_out_by_nat_of_their_zone_or_by_the_one(config, gateways):
    recording = network(config)
    assert len(recording.of("NatGateway")) == len(recording.of("Eip")) == gateways
    nat = {item.name: item.id for item in recording.of("NatGateway")}
    public = {item.id for item in recording.of("Subnet") if "-public-" in item.name}
    assert all(item.inputs["subnetId"] in public for item in recording.of("NatGateway"))
    for zone in config.zones:
        route = recording.one("Route", f"net-private-{zone}-out")
        wanted = nat.get(f"net-nat-{zone}", nat[f"net-nat-{config.zones[0]}"])
        assert route.inputs["natGatewayId"] == wanted
        assert route.inputs["destinationCidrBlock"] == "0.0.0.0/0"
        assert "gatewayId" not in route.inputs


def test_only_public_subnets_reach_the_internet_gateway():
    recording = network()
    gateway = recording.one("InternetGateway").id
    (route,) = [item for item in recording.of("Route") if item.inputs.get("gatewayId") == gateway]
    associated = [
        item
        for item in recording.of("RouteTableAssociation")
        if item.inputs["routeTableId"] == route.inputs["routeTableId"]
    ]
    assert sorted(item.name for item in associated) == [f"net-public-{zone}" for zone in ZONES]


def test_a_zone_more_changes_no_resource_of_the_others():
    few = {item.urn: item.inputs for item in network(NetworkConfig(zones=ZONES[:2])).resources}
    many = {item.urn: item.inputs for item in network(NetworkConfig(zones=ZONES)).resources}
    shared = [urn for urn in few if "VpcEndpoint" not in urn]  # endpoints stand in every zone
    assert {urn: few[urn] for urn in shared} == {urn: many[urn] for urn in shared}


def test_the_clouds_services_are_reached_without_leaving_the_network():
    recording = network()
    endpoints = {item.inputs["serviceName"]: item for item in recording.of("VpcEndpoint")}
    assert set(endpoints) == {f"com.amazonaws.{REGION}.{service}" for service in ("s3", *INTERFACES)}
    tables = {item.id for item in recording.of("RouteTable") if "-private-" in item.name}
    assert set(endpoints[f"com.amazonaws.{REGION}.s3"].inputs["routeTableIds"]) == tables
    private = {item.id for item in recording.of("Subnet") if "-private-" in item.name}
    for service in INTERFACES:
        endpoint = endpoints[f"com.amazonaws.{REGION}.{service}"]
        assert set(endpoint.inputs["subnetIds"]) == private
        assert endpoint.inputs["privateDnsEnabled"] is True
    rule = recording.one("SecurityGroupIngressRule")
    assert (rule.inputs["cidrIpv4"], rule.inputs["fromPort"]) == (str(PROD.network.cidr), 443)


def test_flow_logs_are_kept_encrypted_for_the_days_that_are_asked_for():
    recording = network()
    group, log = recording.one("LogGroup"), recording.one("FlowLog")
    assert (group.inputs["retentionInDays"], group.inputs["kmsKeyId"]) == (PROD.network.flow_log_days, KEY)
    assert log.inputs["logDestination"] == group.outputs["arn"]
    assert log.inputs["trafficType"] == "ALL"
    (statement,) = json.loads(recording.one("RolePolicy").inputs["policy"])["Statement"]
    assert statement["Resource"] == [f"{group.outputs['arn']}:*"]
    assert recording.one("RolePolicy").urn in log.depends_on


def test_the_default_security_group_lets_nothing_through():
    inputs = network().one("DefaultSecurityGroup").inputs
    assert "ingress" not in inputs
    assert "egress" not in inputs


@pytest.mark.parametrize("protect", [True, False])
def test_the_vpc_is_protected_where_losing_it_would_hurt(protect):
    assert network(protect=protect).one("Vpc").options.protect is protect


def test_a_network_of_22_bits_has_subnets_of_the_smallest_size():
    config = NetworkConfig(cidr=IPv4Network("10.0.0.0/22"), zones=ZONES)
    assert {item.inputs["cidrBlock"].split("/")[1] for item in network(config).of("Subnet")} == {"25", "28"}
