"""A tiny program on the real engine: the doubles behave like providers, and refuse what the clouds would."""

import pytest

from tests.pulumi.conftest import Starter

pytestmark = pytest.mark.pulumi

PROGRAM = """\
import pulumi
import pulumi_aws as aws
from pulumi_kubernetes import Provider
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

config = pulumi.Config()
tags = {"team": config.get("team") or "a"}
vpc = aws.ec2.Vpc("net", cidr_block=config.get("cidr") or "10.0.0.0/16", tags=tags)
keep = pulumi.ResourceOptions(protect=config.get_bool("protect") or False)
place = vpc.id if config.get_bool("linked", True) else "vpc-00000000000000000"
subnet = aws.ec2.Subnet("a", vpc_id=place, cidr_block="10.0.0.0/20", availability_zone="eu-central-1a", opts=keep)
cluster = Provider("cluster", kubeconfig="{}", enable_config_map_mutable=config.get_bool("mutable") or False)
name = ObjectMetaArgs(name="settings")
ConfigMap("map", metadata=name, data={"a": config.get("a") or "1"}, opts=pulumi.ResourceOptions(provider=cluster))
if config.get("wrong"):
    aws.ec2.LaunchTemplate("wrong", metadata_options={"httpToken": "required"})
pulumi.export("arn", subnet.arn)
"""
REGION = {"aws:region": "eu-central-1"}
VPC, SUBNET = "aws:ec2/vpc:Vpc net", "aws:ec2/subnet:Subnet a"
MAP = "kubernetes:core/v1:ConfigMap map"


def test_a_program_is_previewed_applied_and_then_stays_as_it_is(tiny: Starter) -> None:
    stack = tiny(PROGRAM)
    made = stack.preview().ok().changes()
    assert set(made) == {"create"}
    assert {VPC, SUBNET, MAP} <= set(made["create"])
    assert stack.journal == []
    stack.up().ok()
    assert {(entry["op"], entry["type"]) for entry in stack.journal} == {
        ("create", "aws:ec2/vpc:Vpc"),
        ("create", "aws:ec2/subnet:Subnet"),
        ("create", "kubernetes:core/v1:ConfigMap"),
    }
    assert stack.up().ok().changes() == {}


def test_a_change_replaces_only_what_it_must_and_what_stands_on_it(tiny: Starter) -> None:
    stack = tiny(PROGRAM, {"tiny:mutable": "true"})
    stack.up().ok()
    stack.configure({**REGION, "tiny:mutable": "true", "tiny:team": "b", "tiny:a": "2"})
    assert stack.up().ok().changes() == {"update": [VPC, MAP]}
    stack.configure({**REGION, "tiny:mutable": "true", "tiny:team": "b", "tiny:a": "2", "tiny:cidr": "10.1.0.0/16"})
    changed = stack.preview().ok().changes()
    assert changed["replace"] == [SUBNET, VPC]
    assert MAP not in {name for names in changed.values() for name in names}


def test_a_config_map_is_replaced_where_the_provider_takes_it_for_immutable(tiny: Starter) -> None:
    stack = tiny(PROGRAM)
    stack.up().ok()
    stack.configure({**REGION, "tiny:a": "2"})
    assert stack.up().ok().changes()["replace"] == [MAP]
    ops = [entry["op"] for entry in stack.journal if entry["type"] == "kubernetes:core/v1:ConfigMap"]
    assert ops == ["create", "delete", "create"]


def test_a_wrong_property_stops_the_preview_with_its_name(tiny: Starter) -> None:
    refused = tiny(PROGRAM, {"tiny:wrong": "true"}).preview().refused()
    assert "metadataOptions.httpToken is no property here; the nearest is httpTokens" in refused.errors


def test_an_id_of_nothing_stops_the_update(tiny: Starter) -> None:
    stack = tiny(PROGRAM, {"tiny:linked": "false"})
    stack.preview().ok()
    refused = stack.up().refused()
    assert "NotFound: aws:ec2/subnet:Subnet refers to vpc-00000000000000000, which does not exist" in refused.errors


def test_what_is_protected_is_not_destroyed_nor_what_it_stands_on(tiny: Starter) -> None:
    stack = tiny(PROGRAM, {"tiny:protect": "true"})
    stack.up().ok()
    assert "protect" in stack.destroy().refused().output
    assert {entry["op"] for entry in stack.journal} == {"create"}
    stack.configure(REGION)
    stack.up().ok()
    stack.destroy().ok()
    deleted = [entry["type"] for entry in stack.journal if entry["op"] == "delete" and entry["type"].startswith("aws:")]
    assert deleted == ["aws:ec2/subnet:Subnet", "aws:ec2/vpc:Vpc"]
