"""A tiny program on the real engine: the doubles behave like providers, and refuse what the clouds would."""

import pytest

from tests.pulumi.conftest import Starter

pytestmark = [pytest.mark.pulumi, pytest.mark.timeout(900)]

PROGRAM = """\
import pulumi
import pulumi_aws as aws
from pulumi_kubernetes import Provider
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

config = pulumi.Config()
tags = {"team": config.get("team") or "a"}
vpc = aws.ec2.Vpc("net", cidr_block=config.get("cidr") or "10.0.0.0/16", tags=tags)
place = vpc.id if config.get_bool("linked", True) else "vpc-00000000000000000"
subnet = aws.ec2.Subnet("a", vpc_id=place, cidr_block="10.0.0.0/20", availability_zone="eu-central-1a")
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


def test_a_program_lives_and_each_change_does_what_it_must_and_no_more(tiny: Starter) -> None:
    stack = tiny(PROGRAM, {"tiny:mutable": "true"})
    made = stack.preview().ok().changes()
    assert set(made) == {"create"}
    assert {VPC, SUBNET, MAP} <= set(made["create"])
    assert stack.journal == []
    assert stack.up().ok().changes() == made
    changed = {**REGION, "tiny:mutable": "true", "tiny:team": "b", "tiny:a": "2"}
    stack.configure(changed)
    assert stack.up().ok().changes() == {"update": [VPC, MAP]}
    stack.configure({**changed, "tiny:cidr": "10.1.0.0/16"})
    replaced = stack.preview().ok().changes()
    assert replaced["replace"] == [SUBNET, VPC]
    assert MAP not in {name for names in replaced.values() for name in names}
    stack.configure({**changed, "tiny:mutable": "false", "tiny:a": "3"})
    assert stack.up().ok().changes()["replace"] == [MAP]
    ops = [entry["op"] for entry in stack.journal if entry["type"] == "kubernetes:core/v1:ConfigMap"]
    assert ops == ["create", "update", "delete", "create"]


def test_a_wrong_property_stops_the_preview_with_its_name(tiny: Starter) -> None:
    refused = tiny(PROGRAM, {"tiny:wrong": "true"}).preview().refused()
    assert "metadataOptions.httpToken is no property here; the nearest is httpTokens" in refused.errors


def test_an_id_of_nothing_stops_the_update(tiny: Starter) -> None:
    refused = tiny(PROGRAM, {"tiny:linked": "false"}).up().refused()
    assert "NotFound: aws:ec2/subnet:Subnet refers to vpc-00000000000000000, which does not exist" in refused.errors
