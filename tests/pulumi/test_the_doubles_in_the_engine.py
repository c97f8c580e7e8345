"""A tiny program on the real engine: the doubles behave like providers, and refuse what the clouds would."""

import pytest

from tests.pulumi.conftest import Starter

pytestmark = pytest.mark.pulumi

PROGRAM = """\
import pulumi
import pulumi_aws as aws

config = pulumi.Config()
vpc = aws.ec2.Vpc("net", cidr_block=config.get("cidr") or "10.0.0.0/16", tags={"team": config.get("team") or "a"})
subnet = aws.ec2.Subnet("a", vpc_id=vpc.id, cidr_block="10.0.0.0/20", availability_zone="eu-central-1a")
pulumi.export("vpc", vpc.id)
pulumi.export("arn", subnet.arn)
"""


def test_a_program_is_previewed_applied_and_then_stays_as_it_is(tiny: Starter) -> None:
    stack = tiny(PROGRAM)
    preview = stack.preview().ok()
    assert preview.changes()["create"] == [
        "aws:ec2/subnet:Subnet a",
        "aws:ec2/vpc:Vpc net",
        "pulumi:providers:aws default_7_51_1",
        "pulumi:pulumi:Stack tiny-test",
    ]
    assert stack.journal == []
    stack.up().ok()
    assert [(entry["op"], entry["type"]) for entry in stack.journal] == [
        ("create", "aws:ec2/vpc:Vpc"),
        ("create", "aws:ec2/subnet:Subnet"),
    ]
    assert stack.up().ok().changes() == {}
