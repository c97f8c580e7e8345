"""The double of the AWS provider refuses what mocks accept, and behaves like the cloud where a test looks."""

import subprocess
import sys

import pytest

from tests.pulumi.direct import Provider, Refused
from tests.pulumi.doubles import wire
from tests.pulumi.doubles.account import Account, AccountError, Entry
from tests.pulumi.doubles.aws_double import AwsDouble
from tests.pulumi.engine import ROOT

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
GROUP = "aws:eks/nodeGroup:NodeGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
ROLE = "arn:aws:iam::111122223333:role/nodes"
NODES = {
    "clusterName": "c",
    "nodeGroupName": "l4",
    "nodeRoleArn": ROLE,
    "subnetIds": ["subnet-00000000000000001"],
    "scalingConfig": {"minSize": 0, "maxSize": 2, "desiredSize": 0},
    "amiType": "AL2023_x86_64_NVIDIA",
    "capacityType": "ON_DEMAND",
    "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
    "releaseVersion": "1.33.0-20261101",
}
FILES = {
    "deploymentType": "PERSISTENT_2",
    "storageCapacity": 2400,
    "perUnitStorageThroughput": 250,
    "subnetIds": "subnet-00000000000000001",
}


@pytest.fixture
def aws(tmp_path, monkeypatch) -> Provider:
    monkeypatch.setenv("DOUBLES_JOURNAL", str(tmp_path / "journal.jsonl"))
    return Provider(AwsDouble(), {"region": "eu-central-1", "defaultTags": '{"tags": {"owner": "ml"}}'})


def test_what_the_sdk_allows_is_taken(aws: Provider) -> None:
    assert aws.failures(GROUP, NODES) == []


@pytest.mark.parametrize(
    ("token", "inputs", "reason"),
    [
        (GROUP, {**NODES, "amiTypes": "X"}, "amiTypes is no property here; the nearest is amiType"),
        (GROUP, {k: v for k, v in NODES.items() if k != "nodeRoleArn"}, "nodeRoleArn is required and missing"),
        (GROUP, {**NODES, "scalingConfig": {"minSizes": 0, "maxSize": 1, "desiredSize": 0}}, "minSizes is no property"),
        (GROUP, {**NODES, "scalingConfig": {"maxSize": 1, "desiredSize": 0}}, "scalingConfig.minSize is required"),
        (GROUP, {**NODES, "diskSize": "20"}, "diskSize is '20' and must be a whole number"),
        (GROUP, {**NODES, "subnetIds": "subnet-1"}, "subnetIds is 'subnet-1' and must be a list"),
        (GROUP, {**NODES, "labels": {"a": 1}}, "labels.a is 1 and must be a string"),
        (GROUP, {**NODES, "capacityType": "RESERVED"}, "allowed: ON_DEMAND, SPOT, CAPACITY_BLOCK"),
        (GROUP, {**NODES, "amiType": "AL2023_NVIDIA"}, "amiType is 'AL2023_NVIDIA'"),
        (GROUP, {**NODES, "taints": [{"key": "a", "effect": "NoSchedule"}]}, "taints[0].effect is 'NoSchedule'"),
        (GROUP, {**NODES, "nodeRoleArn": "nodes"}, "nodeRoleArn is 'nodes' and must be an ARN"),
        (TEMPLATE, {"networkInterfaces": [{"interfaceType": "efa_only"}]}, "allowed: interface, efa, efa-only"),
        (TEMPLATE, {"instanceMarketOptions": {"marketType": "block"}}, "instanceMarketOptions.marketType is 'block'"),
        (TEMPLATE, {"metadataOptions": {"httpTokens": "yes"}}, "metadataOptions.httpTokens is 'yes'"),
        (TEMPLATE, {"instanceType": "p5.47xlarge"}, "instanceType is 'p5.47xlarge'"),
        (LUSTRE, {**FILES, "deploymentType": "PERSISTENT_3"}, "deploymentType is 'PERSISTENT_3'"),
        (LUSTRE, {**FILES, "subnetIds": ["subnet-1"]}, "must be a string"),
        ("aws:iam/role:Role", {"assumeRolePolicy": "{'a': 1}"}, "assumeRolePolicy must be a JSON document"),
        ("aws:ec2/placementGroup:PlacementGroup", {"strategy": "near"}, "strategy is 'near'"),
    ],
)
def test_what_the_cloud_would_refuse_is_refused(aws: Provider, token: str, inputs: dict, reason: str) -> None:
    failures = aws.failures(token, inputs)
    assert any(reason in failure for failure in failures), failures


def test_a_type_that_the_sdk_lacks_is_refused(aws: Provider) -> None:
    with pytest.raises(Refused, match="pulumi_aws has no resource aws:ec2/vpcs:Vpcs"):
        aws.failures("aws:ec2/vpcs:Vpcs", {})


def test_a_provider_without_a_region_takes_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("DOUBLES_JOURNAL", str(tmp_path / "journal.jsonl"))
    assert Provider(AwsDouble(), {}).failures(VPC, {"cidrBlock": "10.0.0.0/16"}) == [
        "region is not set in the provider, and the double has no other"
    ]


def test_what_the_cloud_fills_in_is_unknown_at_preview_and_looks_real_later(aws: Provider) -> None:
    _, before = aws.create(VPC, {"cidrBlock": "10.0.0.0/16"}, preview=True)
    assert before["cidrBlock"] == "10.0.0.0/16"
    assert before["arn"] is before["id"] is wire.UNKNOWN
    id_, after = aws.create(VPC, {"cidrBlock": "10.0.0.0/16"})
    assert id_.startswith("vpc-")
    assert len(id_) == 21
    assert after["id"] == id_
    assert after["arn"] == f"arn:aws:ec2:eu-central-1:111122223333:vpc/{id_}"
    assert after["tagsAll"] == {"owner": "ml"}


def test_two_resources_never_get_one_id(aws: Provider) -> None:
    first, _ = aws.create(VPC, {"cidrBlock": "10.0.0.0/16"})
    second, _ = aws.create(VPC, {"cidrBlock": "10.0.0.0/16"})
    assert first != second


def test_a_nested_property_that_only_the_cloud_knows_is_unknown_at_preview(aws: Provider) -> None:
    cluster = {"name": "c", "roleArn": ROLE, "vpcConfig": {"subnetIds": ["subnet-00000000000000001"]}}
    _, before = aws.create("aws:eks/cluster:Cluster", cluster, preview=True)
    assert before["vpcConfig"]["subnetIds"] == ["subnet-00000000000000001"]
    assert before["vpcConfig"]["clusterSecurityGroupId"] is wire.UNKNOWN


def test_a_name_that_nobody_gave_is_made_once_and_kept(aws: Provider) -> None:
    role = {"assumeRolePolicy": "{}"}
    first = aws.check("aws:iam/role:Role", role)
    assert first["name"].startswith("x-")
    assert aws.check("aws:iam/role:Role", role, first)["name"] == first["name"]


@pytest.mark.parametrize(
    ("changed", "replaces"),
    [
        ({"releaseVersion": "1.33.0-20261201"}, ()),
        ({"labels": {"pool": "l4"}}, ()),
        ({"scalingConfig": {"minSize": 1, "maxSize": 2, "desiredSize": 1}}, ()),
        ({"amiType": "BOTTLEROCKET_x86_64_NVIDIA"}, ("amiType",)),
        ({"subnetIds": ["subnet-00000000000000002"]}, ("subnetIds",)),
        ({"capacityType": "SPOT", "labels": {"a": "b"}}, ("capacityType",)),
    ],
)
def test_a_node_group_is_replaced_only_by_what_the_api_cannot_change(
    aws: Provider, changed: dict, replaces: tuple[str, ...]
) -> None:
    found = aws.diff(GROUP, NODES, {**NODES, **changed}, {**NODES, "tagsAll": {"owner": "ml"}})
    assert found.replaces == replaces
    assert {path.split(".")[0].split("[")[0] for path in found.changed} == set(changed)


def test_a_file_system_grows_in_place_and_shrinks_by_replacement(aws: Provider) -> None:
    outputs = {**FILES, "tagsAll": {"owner": "ml"}}
    assert aws.diff(LUSTRE, FILES, {**FILES, "storageCapacity": 4800}, outputs).replaces == ()
    assert aws.diff(LUSTRE, FILES, {**FILES, "storageCapacity": 1200}, outputs).replaces == ("storageCapacity",)


def test_the_throughput_of_a_file_system_with_efa_is_fixed(aws: Provider) -> None:
    faster = {"perUnitStorageThroughput": 500}
    assert aws.diff(LUSTRE, FILES, {**FILES, **faster}).replaces == ()
    with_efa = {**FILES, "efaEnabled": True}
    assert aws.diff(LUSTRE, with_efa, {**with_efa, **faster}).replaces == ("perUnitStorageThroughput",)


def test_a_change_that_the_table_does_not_have_is_an_error(aws: Provider) -> None:
    with pytest.raises(Refused, match=r"warmPoolConfig changed, and changes.psv does not say what that does"):
        aws.diff(GROUP, NODES, {**NODES, "warmPoolConfig": {"minSize": 1}})


def test_another_default_tag_changes_what_carries_tags(aws: Provider) -> None:
    vpc = {"cidrBlock": "10.0.0.0/16"}
    assert list(aws.diff(VPC, vpc, vpc, {**vpc, "tagsAll": {"owner": "web"}}).changed) == ["tagsAll"]
    assert not aws.diff(VPC, vpc, vpc, {**vpc, "tagsAll": {"owner": "ml"}}).changed


def test_a_launch_template_counts_its_versions(aws: Provider) -> None:
    old = {"name": "l4", "instanceType": "g6.2xlarge"}
    id_, outputs = aws.create(TEMPLATE, old)
    assert outputs["latestVersion"] == 1
    new = {**old, "instanceType": "g6.4xlarge"}
    changed = aws.update(TEMPLATE, id_, outputs, old, new)
    assert changed["latestVersion"] == 2
    assert changed["instanceType"] == "g6.4xlarge"
    assert changed["arn"] == outputs["arn"]


def test_a_property_that_was_taken_away_is_gone(aws: Provider) -> None:
    old = {"name": "l4", "instanceType": "g6.2xlarge", "keyName": "k"}
    id_, outputs = aws.create(TEMPLATE, old)
    assert "keyName" not in aws.update(TEMPLATE, id_, outputs, old, {"name": "l4", "instanceType": "g6.2xlarge"})


def test_a_name_in_use_is_refused(aws: Provider) -> None:
    aws.create("aws:iam/role:Role", {"name": "nodes", "assumeRolePolicy": "{}"})
    with pytest.raises(Refused, match="AlreadyExists: aws:iam/role:Role 'nodes' exists"):
        aws.create("aws:iam/role:Role", {"name": "nodes", "assumeRolePolicy": "{}"}, "other")


def test_what_a_resource_refers_to_must_exist(aws: Provider) -> None:
    subnet = {"vpcId": "vpc-00000000000000001", "cidrBlock": "10.0.0.0/20"}
    with pytest.raises(Refused, match="NotFound: aws:ec2/subnet:Subnet refers to vpc-00000000000000001"):
        aws.create(SUBNET, subnet)


def test_what_is_in_use_is_not_deleted(aws: Provider) -> None:
    vpc, _ = aws.create(VPC, {"cidrBlock": "10.0.0.0/16"})
    subnet, _ = aws.create(SUBNET, {"vpcId": vpc, "cidrBlock": "10.0.0.0/20"}, "a")
    with pytest.raises(Refused, match=f"DependencyViolation: {vpc} is in use by"):
        aws.delete(VPC, vpc)
    aws.delete(SUBNET, subnet, "a")
    aws.delete(VPC, vpc)


def test_an_unknown_value_never_reaches_an_update(aws: Provider) -> None:
    with pytest.raises(Refused, match="unknown value"):
        aws.create(SUBNET, {"vpcId": wire.UNKNOWN, "cidrBlock": "10.0.0.0/20"})


def test_an_account_lies_beside_the_state_when_nobody_says_where(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("DOUBLES_JOURNAL", raising=False)
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path}")
    Account.of_environment().create(Entry("create", VPC, "urn", "vpc-00000000000000001"))
    assert Account.of_environment().number() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["doubles.jsonl"]
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://state")
    with pytest.raises(AccountError, match="DOUBLES_JOURNAL to a file"):
        Account.of_environment()


MANY_AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from tests.pulumi.doubles.sdk_types import resource_type

TOKENS = ("aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet", "aws:ec2/routeTableAssociation:RouteTableAssociation")
together = Barrier(12)


def read(place):
    together.wait()
    return resource_type("pulumi_aws", TOKENS[place % len(TOKENS)])


with ThreadPoolExecutor(12) as threads:
    print(sum(bool(found.inputs) for found in threads.map(read, range(12))))
"""


def test_many_questions_at_once_get_whole_answers_from_an_sdk_that_is_not_loaded_yet(monkeypatch) -> None:
    monkeypatch.delenv("DOUBLES_TYPES", raising=False)
    done = subprocess.run([sys.executable, "-c", MANY_AT_ONCE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "12\n", done.stderr
