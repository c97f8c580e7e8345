"""The cluster, its add-ons and the nodes of the system."""

import json

import pytest

from fleet.cloud.node_types import is_arm
from infra.add_ons import BEFORE_NODES, ON_NODES, AddOns, AddOnsArgs
from infra.cluster import Cluster, ClusterArgs
from infra.cluster_names import admin_word
from infra.providers import kubeconfig_text, tags_of
from infra.stack_config import SystemNodesConfig
from infra.system_nodes import SystemNodes, SystemNodesArgs, ami_type
from infra.versions import ADD_ONS, add_on_version, add_ons_of, chart, numbers
from tests.infra.recording import record
from tests.infra.stacks import ADD_ON_VERSIONS, ADMIN, DEV, PROD, RELEASE, STAGING, stack

KEY = "arn:aws:kms:eu-central-1:111122223333:key/invented"


def cluster(*, protect=True, **fields):
    config = PROD.cluster.model_copy(update=fields)
    args = ClusterArgs(config, "enginehouse-prod", ["subnet-a", "subnet-b"], KEY, protect)
    return record(lambda: Cluster("eks", args))


def test_access_is_by_entries_alone_and_the_creator_has_none():
    recording = cluster()
    assert recording.one("Cluster", "eks-cluster").inputs["accessConfig"] == {
        "authenticationMode": "API",
        "bootstrapClusterCreatorAdminPermissions": False,
    }
    entry, policy = recording.one("AccessEntry"), recording.one("AccessPolicyAssociation")
    assert entry.inputs["principalArn"] == policy.inputs["principalArn"] == ADMIN
    assert policy.inputs["policyArn"].endswith("/AmazonEKSClusterAdminPolicy")
    assert policy.inputs["accessScope"] == {"type": "cluster"}


def test_another_administrator_changes_nothing_of_the_first():
    other = "arn:aws:iam::111122223333:role/people/operators"
    one, two = cluster(), cluster(admins=(other, ADMIN))
    assert {item.urn for item in one.resources} < {item.urn for item in two.resources}
    assert admin_word(other) == "111122223333-people-operators"


def test_secrets_are_encrypted_with_a_key_of_its_own_and_all_logs_are_kept():
    recording = cluster()
    inputs = recording.one("Cluster", "eks-cluster").inputs
    key = recording.one("Key")
    assert inputs["encryptionConfig"] == {"provider": {"keyArn": key.outputs["arn"]}, "resources": ["secrets"]}
    assert len(inputs["enabledClusterLogTypes"]) == 5
    group = recording.one("LogGroup")
    assert group.inputs["name"] == "/aws/eks/enginehouse-prod/cluster"
    assert (group.inputs["retentionInDays"], group.inputs["kmsKeyId"]) == (PROD.cluster.log_days, KEY)
    waits = recording.one("Cluster", "eks-cluster").depends_on
    assert {group.urn, recording.one("RolePolicyAttachment").urn, recording.one("KeyPolicy").urn} <= waits


def test_a_private_endpoint_names_no_networks_and_a_public_one_its_own():
    private = cluster().one("Cluster", "eks-cluster").inputs["vpcConfig"]
    assert (private["endpointPrivateAccess"], private["endpointPublicAccess"]) == (True, False)
    assert "publicAccessCidrs" not in private
    config = stack("prod", cluster={
        "kubernetes": "1.36", "admins": [ADMIN], "endpoint": "public", "public_cidrs": ["203.0.113.0/24"]
    })  # fmt: skip
    args = ClusterArgs(config.cluster, "x", ["subnet-a"], KEY, protect=False)
    public = record(lambda: Cluster("eks", args)).one("Cluster", "eks-cluster").inputs["vpcConfig"]
    assert (public["endpointPrivateAccess"], public["publicAccessCidrs"]) == (True, ["203.0.113.0/24"])


def test_add_ons_are_ours_support_is_standard_and_deletion_is_guarded():
    recording = cluster()
    made = recording.one("Cluster", "eks-cluster")
    assert made.inputs["bootstrapSelfManagedAddons"] is False
    assert made.inputs["upgradePolicy"] == {"supportType": "STANDARD"}
    assert made.inputs["deletionProtection"] is True
    assert made.options.protect
    assert recording.one("Key").options.protect
    assert not cluster(protect=False).one("Cluster", "eks-cluster").options.protect


def add_ons(versions=ADD_ON_VERSIONS):
    return record(lambda: AddOns("addons", AddOnsArgs("enginehouse-prod", versions)))


def test_add_ons_have_their_versions_and_come_in_the_order_that_they_need():
    recording = add_ons()
    made = {item.inputs["addonName"]: item for item in recording.of("Addon")}
    assert {name: item.inputs["addonVersion"] for name, item in made.items()} == ADD_ON_VERSIONS
    order = (*BEFORE_NODES, *ON_NODES)
    assert set(order) == set(ADD_ONS)
    for index, name in enumerate(order):
        assert {made[before].urn for before in order[:index]} <= made[name].depends_on


def test_the_network_add_on_delegates_prefixes_and_has_a_role_of_its_own():
    recording = add_ons()
    cni = recording.one("Addon", "addons-vpc-cni")
    assert json.loads(cni.inputs["configurationValues"])["env"]["ENABLE_PREFIX_DELEGATION"] == "true"
    (identity,) = cni.inputs["podIdentityAssociations"]
    assert identity["serviceAccount"] == "aws-node"
    assert identity["roleArn"] == recording.one("Role", "addons-vpc-cni-role").outputs["arn"]


def test_the_lustre_driver_looks_file_systems_up_and_makes_none():
    recording = add_ons()
    (statement,) = json.loads(recording.one("RolePolicy").inputs["policy"])["Statement"]
    assert statement["Action"] == ["fsx:DescribeFileSystems"]
    without = {name: version for name, version in ADD_ON_VERSIONS.items() if name != "aws-fsx-csi-driver"}
    assert not add_ons(without).of("RolePolicy")


def test_versions_come_from_the_stack_and_the_driver_of_lustre_only_with_lustre():
    assert "aws-fsx-csi-driver" in add_ons_of(STAGING)
    assert "aws-fsx-csi-driver" not in add_ons_of(DEV)
    assert add_on_version("coredns", STAGING.versions) == ADD_ON_VERSIONS["coredns"]
    assert all(item.version is None for item in ADD_ONS.values())  # nothing is invented
    assert chart("keda", STAGING.versions).version == "2.20.2"
    own = STAGING.versions.model_copy(update={"charts": {"keda": "2.21.0"}})
    assert chart("keda", own).version == "2.21.0"
    assert numbers("v1.9.9-eksbuild.1") == (1, 9, 9) < numbers("1.36")


def system_nodes(**fields):
    config = SystemNodesConfig.model_validate({"release": RELEASE, **fields})
    args = SystemNodesArgs(config, RELEASE, "enginehouse-prod", "1.36", ["subnet-a"], "arn:role", tags_of(PROD))
    return record(lambda: SystemNodes("system", args))


def test_system_nodes_are_pinned_guarded_and_carry_the_tags():
    recording = system_nodes(min_nodes=3, max_nodes=9)
    group, template = recording.one("NodeGroup"), recording.one("LaunchTemplate")
    assert group.inputs["releaseVersion"] == RELEASE
    assert group.inputs["scalingConfig"] == {"minSize": 3, "desiredSize": 3, "maxSize": 9}
    assert group.options.ignore_changes == ()
    assert group.inputs["launchTemplate"]["id"] == template.id
    assert "taints" not in group.inputs
    assert "diskSize" not in group.inputs
    assert template.inputs["metadataOptions"]["httpTokens"] == "required"
    assert template.inputs["blockDeviceMappings"][0]["ebs"]["encrypted"] == "true"
    assert "instanceType" not in template.inputs
    assert all(item["tags"]["owner"] == "platform" for item in template.inputs["tagSpecifications"])


@pytest.mark.parametrize(
    ("name", "arm"),
    [("m7i.xlarge", False), ("m7g.xlarge", True), ("c7gn.large", True), ("g6.xlarge", False), ("im4gn.large", True)],
)
def test_the_image_follows_the_processor(name, arm):
    assert is_arm(name) is arm
    assert ami_type([name]) == ("AL2023_ARM_64_STANDARD" if arm else "AL2023_x86_64_STANDARD")


def test_a_kubeconfig_holds_no_secret():
    text = kubeconfig_text({"name": "c", "endpoint": "https://e", "ca": "Q0E="}, "eu-central-1")
    (user,) = json.loads(text)["users"]
    assert set(user["user"]) == {"exec"}
    assert user["user"]["exec"]["args"][:5] == ["--region", "eu-central-1", "eks", "get-token", "--cluster-name"]
