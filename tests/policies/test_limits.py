"""Regions, instance types and tags are limited wherever a resource has them."""

from dataclasses import replace
from pathlib import Path

import pytest
from pulumi_policy import EnforcementLevel

from fleet.policy import PlatformPolicy
from policies import pack
from policies.decode_once import DecodedOnce
from policies.knowledge import ground_of
from tests.policies.edited import program
from tests.policies.fault import add, put
from tests.policies.pack_server import PACK, requests

SUBNET = "Subnet network-private-eu-central-1a"
POOL = "kubernetes:karpenter.sh/v1:NodePool"


@pytest.fixture(scope="module")
def server():
    ground = ground_of(
        {"PULUMI_STACK": "dev"}, root=Path("nowhere"), policy=PACK / "policy.yaml", today=lambda: pytest.fail("asked")
    )
    platform = PlatformPolicy(regions=("eu-central-1",), instance_types=("p5.*", "g6.xlarge"))
    return DecodedOnce("pack", "1", pack.policies(replace(ground, platform=platform)), EnforcementLevel.MANDATORY)


def pool(*requirements):
    """A node pool of Karpenter that asks for something."""
    asked = [{"key": key, "operator": operator, "values": values} for key, operator, values in requirements]
    return add(POOL, "pool", {"spec": {"template": {"spec": {"requirements": asked}}}})


TYPE, FAMILY = "node.kubernetes.io/instance-type", "karpenter.k8s.aws/instance-family"
REFUSED = [
    (put(SUBNET, "region", "us-east-1"), "region-allowed"),
    (add("aws:s3/bucketV2:BucketV2", "far", {"region": "us-east-1"}), "region-allowed"),
    (add("pulumi:providers:aws-native", "native", {"region": "us-east-1"}), "region-allowed"),
    (add("aws:ec2/instance:Instance", "one", {"instanceType": "m5.large"}), "instance-type-allowed"),
    (add("aws:ec2/capacityReservation:CapacityReservation", "one", {"instanceType": "p5en.48xlarge"}),
     "instance-type-allowed"),
    (pool((TYPE, "In", ["g6.xlarge", "g6.2xlarge"])), "instance-type-allowed"),
    (pool((FAMILY, "In", ["p5", "g6"])), "instance-type-allowed"),
    (pool((TYPE, "NotIn", ["g6.2xlarge"])), "instance-type-allowed"),
    (pool(), "instance-type-allowed"),
]  # fmt: skip
ALLOWED = [
    put(SUBNET, "region", "eu-central-1"),
    pool((TYPE, "In", ["g6.xlarge", "p5.48xlarge"]), (FAMILY, "In", ["g6"])),
    pool((FAMILY, "In", ["p5"])),
]


def said(server, change):
    changed = program()
    change(changed)
    answers = (server.Analyze(item, None) for item in requests(changed.changed))
    limits = {"region-allowed", "instance-type-allowed"}
    return [found for answer in answers for found in answer.diagnostics if found.policyName in limits]


@pytest.mark.parametrize(("change", "policy"), REFUSED)
def test_a_limit_holds_in_every_kind_that_has_it(server, change, policy):
    (found,) = said(server, change)
    assert found.policyName == policy
    assert "allowed: " in found.message


@pytest.mark.parametrize("change", ALLOWED)
def test_what_is_allowed_passes(server, change):
    assert said(server, change) == []
