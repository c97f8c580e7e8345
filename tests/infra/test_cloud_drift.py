"""Drift: what AWS says of launch templates (moto) and file systems (doubles) against what was asked for."""

from dataclasses import replace
from itertools import count

import boto3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws

from fleet.cloud.interfaces import Interface, efa_layout
from fleet.cloud.lustre import FileSystem
from fleet.cloud.lustre_links import Link
from fleet.hardware import instance
from infra.cloud_client import CloudUnanswered
from infra.cloud_drift import launch_template_drift, lustre_drift
from tests.infra.moto_gaps import FILE_SYSTEM, REGION, answering, association, file_system_answer

NUMBERS = count()
LAYOUTS = st.sampled_from(["p4d.24xlarge", "p6-b200.48xlarge", "g6.8xlarge", "g6.xlarge"])


@pytest.fixture(scope="module")
def ec2():
    with mock_aws():
        yield boto3.client("ec2", region_name=REGION)


def made(ec2, interfaces) -> str:
    """A launch template in moto."""
    asked = [
        {
            "NetworkCardIndex": item.card,
            "DeviceIndex": item.device,
            "InterfaceType": item.type,
            **({"AssociatePublicIpAddress": True} if item.wants_public_ip else {}),
        }
        for item in interfaces
    ]
    answer = ec2.create_launch_template(
        LaunchTemplateName=f"pool-{next(NUMBERS)}", LaunchTemplateData={"NetworkInterfaces": asked}
    )
    return answer["LaunchTemplate"]["LaunchTemplateId"]


@settings(max_examples=6, deadline=None)
@given(name=LAYOUTS, lost=st.integers(0, 40), wrong=st.sampled_from(["efa", "efa-only", "interface"]))
def test_a_template_drifts_exactly_where_an_interface_is_missing_or_another(ec2, name, lost, wrong):
    layout = efa_layout(instance(name))
    index = lost % len(layout)
    assert launch_template_drift(ec2, made(ec2, layout), layout) == ()
    fewer = made(ec2, layout[:index] + layout[index + 1 :])
    assert [item.found for item in launch_template_drift(ec2, fewer, layout)] == ["nothing"]
    other = made(ec2, [*layout[:index], replace(layout[index], type=wrong), *layout[index + 1 :]])
    found = [item.found for item in launch_template_drift(ec2, other, layout)]
    assert found == ([] if wrong == layout[index].type else [wrong])


def test_an_interface_too_many_and_a_public_ip_are_drift(ec2):
    there = [Interface(0, 0, wants_public_ip=True), Interface(1, 0, "efa-only")]
    drift = launch_template_drift(ec2, made(ec2, there), [Interface(0, 0)])
    assert [item.sentence for item in drift] == [
        "card 0 device 0 is interface with a public IP, should be interface",
        "card 1 device 0 is efa-only, should be nothing",
    ]


def test_a_template_that_is_not_there_is_told(ec2):
    with pytest.raises(CloudUnanswered, match="lt-0123456789abcdef0"):
        launch_template_drift(ec2, "lt-0123456789abcdef0", [])


WISH = FileSystem(4800, 500, metadata_mode="AUTOMATIC", version="2.15")
LINK = Link("/weights", "s3://weights/")


class Desk:
    """FSx as the look-up sees it: the file system of moto's gaps and its associations."""

    def __init__(self, answer, *associations):
        self._answer, self._associations = answer, associations

    def describe_file_systems(self, **request):
        with answering("fsx", "describe_file_systems", (request, self._answer)) as client:
            return client.describe_file_systems(**request)

    def describe_data_repository_associations(self, **request):
        answer = {"Associations": list(self._associations)}
        with answering("fsx", "describe_data_repository_associations", (request, answer)) as client:
            return client.describe_data_repository_associations(**request)


def drift(*associations, **changes) -> list[str]:
    desk = Desk(file_system_answer(**changes), *associations)
    return [item.sentence for item in lustre_drift(desk, FILE_SYSTEM, WISH, [LINK])]


AS_ASKED = association("/weights", "s3://weights", ["CHANGED", "NEW"])


def test_a_file_system_as_it_was_asked_for_has_no_drift():
    assert drift(AS_ASKED) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"StorageCapacity": 7200}, "capacity is 7200 GiB, should be 4800 GiB"),
        ({"PerUnitStorageThroughput": 250}, "throughput is 250 MB/s per TiB, should be 500 MB/s per TiB"),
        ({"DeploymentType": "SCRATCH_2"}, "deployment type is SCRATCH_2, should be PERSISTENT_2"),
        ({"EfaEnabled": True}, "EFA is on, should be off"),
        ({"FileSystemTypeVersion": "2.12"}, "Lustre version is 2.12, should be 2.15"),
    ],
)
def test_each_setting_that_differs_is_one_sentence(changes, sentence):
    assert drift(AS_ASKED, **changes) == [sentence]


def test_metadata_that_somebody_has_provisioned_is_drift():
    found = drift(AS_ASKED, MetadataConfiguration={"Mode": "USER_PROVISIONED", "Iops": 12000})
    assert found == [
        "metadata mode is USER_PROVISIONED, should be AUTOMATIC",
        "metadata IOPS is 12000, should be nothing",
    ]


@pytest.mark.parametrize(
    ("associations", "sentence"),
    [
        ((), "link /weights is nothing, should be s3://weights imports CHANGED NEW"),
        (
            (association("/weights", "s3://weights/", ["NEW", "CHANGED", "DELETED"]),),
            "link /weights is s3://weights imports CHANGED DELETED NEW, should be s3://weights imports CHANGED NEW",
        ),
        (
            (association("/weights", "s3://weights/", ["NEW", "CHANGED"], ["NEW"]),),
            "link /weights is s3://weights imports CHANGED NEW, exports NEW, "
            "should be s3://weights imports CHANGED NEW",
        ),
        (
            (AS_ASKED, association("/scratch", "s3://other", ["NEW"])),
            "link /scratch is s3://other imports NEW, should be nothing",
        ),
    ],
)
def test_a_link_that_is_gone_another_or_too_many_is_drift(associations, sentence):
    assert drift(*associations) == [sentence]


def test_what_moto_leaves_out_of_a_file_system_is_nothing_and_no_crash():
    with mock_aws():
        fsx = boto3.client("fsx", region_name=REGION)
        made_system = fsx.create_file_system(
            FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=["subnet-0123456789abcdef0"]
        )
        id_ = made_system["FileSystem"]["FileSystemId"]

        class Moto(Desk):
            def describe_file_systems(self, **request):
                return fsx.describe_file_systems(**request)

        found = lustre_drift(Moto({}, AS_ASKED), id_, WISH, [LINK])
    assert "capacity is 1200 GiB, should be 4800 GiB" in [item.sentence for item in found]


def test_a_file_system_that_is_not_there_is_told():
    with pytest.raises(CloudUnanswered, match=f"no file system {FILE_SYSTEM}"):
        lustre_drift(Desk({"FileSystems": []}), FILE_SYSTEM, WISH, [])
