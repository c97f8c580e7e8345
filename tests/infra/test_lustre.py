"""The file system of the weights as the engine gets it: what is set, what stands around it, and in which order."""

from functools import cache

import pulumi
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.cloud.lustre import EFA_CAPACITY_GIB, smallest_holding
from fleet.cloud.lustre_ports import SELF, Opening, port_findings
from infra.lustre import Lustre, LustreArgs
from infra.lustre_group import LustreGroup, LustreGroupArgs
from infra.lustre_wish import wish_findings
from infra.stack_config import LustreWeights
from infra.weights_volume import WeightsVolume, WeightsVolumeArgs
from tests.infra.recording import Recording, record
from tests.infra.sdk_shapes import UNKNOWN

GROUPS = {"cluster": "sg-nodes", "pool-h100": "sg-efa"}
FILE_SYSTEM, LINK = "LustreFileSystem", "DataRepositoryAssociation"


def weights(**changes) -> LustreWeights:
    plain = {"kind": "lustre", "capacity_gib": 4800, "mb_per_second_per_tib": 1000, "zone": "eu-central-1a"}
    return LustreWeights(**plain | changes)


@cache
@cache
def recorded(*, protect=True, preview=False, **changes) -> Recording:
    def program():
        args = LustreArgs(
            weights=weights(**changes),
            vpc_id="vpc-1",
            subnet_id="subnet-1",
            node_groups=GROUPS,
            bucket="weights-bucket",
            key_arn="arn:aws:kms:eu-central-1:111122223333:key/1",
            protect=protect,
        )
        made = Lustre("weights", args)
        WeightsVolume(
            "volume", WeightsVolumeArgs(made.id, made.dns_name, made.mount_name, capacity_gib=4800, namespace="engines")
        )
        pulumi.export("mount", made.mount_name)

    return record(program, preview=preview)


def openings(recording: Recording, group: str) -> list[Opening]:
    """The rules of a group, as the rules of the cloud read them."""
    return [
        Opening(
            peer=SELF
            if rule.inputs["referencedSecurityGroupId"] == group
            else rule.inputs["referencedSecurityGroupId"],
            protocol=rule.inputs["ipProtocol"],
            first_port=rule.inputs.get("fromPort", 0),
            last_port=rule.inputs.get("toPort", 65535),
            is_ingress=rule.type.endswith("IngressRule"),
        )
        for rule in (*recording.of("SecurityGroupIngressRule"), *recording.of("SecurityGroupEgressRule"))
        if rule.inputs["securityGroupId"] == group
    ]


@settings(max_examples=5, deadline=None)
@given(size=st.integers(1, 60_000), tier=st.sampled_from(sorted(EFA_CAPACITY_GIB)), efa=st.booleans())
def test_every_wish_that_the_rules_accept_is_built_as_wished_and_its_ports_are_open(size, tier, efa):
    gib = smallest_holding(size, mb_per_second_per_tib=tier, has_efa=efa)
    changes = {"capacity_gib": gib, "mb_per_second_per_tib": tier, "efa": efa}
    assert list(wish_findings(weights(**changes))) == []
    recording = recorded(**changes)
    inputs = recording.one(FILE_SYSTEM).inputs
    assert (inputs["storageCapacity"], inputs["perUnitStorageThroughput"]) == (gib, tier)
    assert inputs["efaEnabled"] is efa
    (group,) = inputs["securityGroupIds"]
    assert list(port_findings(openings(recording, group), has_efa=efa)) == []


def test_a_file_system_is_persistent_encrypted_in_one_subnet_and_has_no_import_path():
    inputs = recorded().one(FILE_SYSTEM).inputs
    assert inputs["deploymentType"] == "PERSISTENT_2"
    assert inputs["kmsKeyId"].startswith("arn:aws:kms:")
    assert inputs["subnetIds"] == "subnet-1"
    assert inputs["metadataConfiguration"] == {"mode": "AUTOMATIC"}
    assert not {"importPath", "exportPath", "autoImportPolicy", "importedFileChunkSize"} & inputs.keys()


def test_metadata_iops_are_passed_with_their_mode():
    inputs = recorded(metadata_iops=12000).one(FILE_SYSTEM).inputs
    assert inputs["metadataConfiguration"] == {"mode": "USER_PROVISIONED", "iops": 12000}


def test_the_link_imports_new_and_changed_objects_exports_nothing_and_deletes_nothing():
    inputs = recorded().one(LINK).inputs
    assert inputs["s3"] == {"autoImportPolicy": {"events": ["NEW", "CHANGED"]}}
    assert inputs["dataRepositoryPath"] == "s3://weights-bucket/"
    assert inputs["fileSystemPath"] == "/weights"
    assert inputs["batchImportMetaDataOnCreate"] is True
    assert inputs["deleteDataInFilesystem"] is False


def test_every_port_is_open_before_the_file_system_is_made():
    recording = recorded(efa=True)
    rules = {rule.urn for kind in ("Ingress", "Egress") for rule in recording.of(f"SecurityGroup{kind}Rule")}
    assert rules
    assert rules <= recording.one(FILE_SYSTEM).depends_on


@pytest.mark.parametrize("nodes", ["sg-nodes", "sg-efa"])
def test_nodes_let_the_file_system_in_and_with_efa_everything_goes_both_ways(nodes):
    recording = recorded(efa=True)
    (group,) = recording.one(FILE_SYSTEM).inputs["securityGroupIds"]
    ways = {(rule.protocol, rule.is_ingress) for rule in openings(recording, nodes) if rule.peer == group}
    assert {("-1", True), ("-1", False), ("tcp", True), ("tcp", False)} == ways
    assert ("-1", True) not in {(rule.protocol, rule.is_ingress) for rule in openings(recorded(), nodes)}


def test_a_pool_more_moves_no_rule_of_another():
    def rules(**groups):
        args = LustreGroupArgs("vpc-1", groups, has_efa=True)
        recording = record(lambda: LustreGroup("access", args))
        kinds = (*recording.of("SecurityGroupIngressRule"), *recording.of("SecurityGroupEgressRule"))
        return {(rule.type, rule.name): rule.inputs for rule in kinds}

    few, more = rules(cluster="sg-1", z="sg-2"), rules(cluster="sg-1", a="sg-3", z="sg-2")
    assert few.items() <= more.items()


@pytest.mark.parametrize("protect", [True, False])
def test_the_file_system_is_protected_and_kept_where_the_environment_says_so(protect):
    recording = recorded(protect=protect)
    options = recording.one(FILE_SYSTEM).options
    assert (options.protect, options.retain_on_delete) == (protect, protect)
    assert recording.one(LINK).options.protect is protect
    assert options.timeouts.keys() == {"create", "update", "delete"}


def test_the_volume_takes_its_mount_name_from_the_file_system():
    recording = recorded()
    volume, system = recording.one("PersistentVolume"), recording.one(FILE_SYSTEM)
    csi = volume.inputs["spec"]["csi"]
    assert csi["driver"] == "fsx.csi.aws.com"
    assert csi["volumeHandle"] == system.id
    assert csi["volumeAttributes"] == {
        "dnsname": system.outputs["dnsName"],
        "mountname": system.outputs["mountName"],
    }
    assert system.urn in volume.property_dependencies["spec"]
    assert recording.outputs["mount"] == system.outputs["mountName"]


def test_the_volume_stays_is_shared_and_belongs_to_its_claim_alone():
    recording = recorded()
    volume, claim = recording.one("PersistentVolume").inputs, recording.one("PersistentVolumeClaim").inputs
    spec = volume["spec"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert spec["accessModes"] == claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert spec["mountOptions"] == ["flock"]
    assert spec["capacity"] == claim["spec"]["resources"]["requests"] == {"storage": "4800Gi"}
    assert spec["storageClassName"] == claim["spec"]["storageClassName"] == ""
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert spec["claimRef"]["namespace"] == claim["metadata"]["namespace"] == "engines"
    assert spec["claimRef"]["name"] == claim["metadata"]["name"]


def test_the_mount_name_is_unknown_at_preview_and_nothing_is_guessed():
    csi = recorded(preview=True).one("PersistentVolume").inputs["spec"]["csi"]
    assert csi["volumeAttributes"] == {"dnsname": UNKNOWN, "mountname": UNKNOWN}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"capacity_gib": 1300}, "lustre-capacity"),
        ({"efa": True, "mb_per_second_per_tib": 125}, "lustre-efa-capacity"),
        ({"metadata_iops": 1501}, "lustre-metadata"),
    ],
)
def test_a_wrong_wish_is_found_before_anything_is_made(changes, rule):
    assert [finding.rule.id for finding in wish_findings(weights(**changes))] == [rule]
