"""What the tools ask of AWS, against moto; the calls that it lacks against doubles that AWS's own models check."""

from datetime import UTC, datetime

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from infra.cloud_client import CloudUnanswered, ask, pages
from infra.cloud_lookups import add_on, image_release, offered_zones, release_parameter, reservation
from tests.infra.moto_gaps import (
    REGION,
    RESERVATION,
    add_on_page,
    answering,
    refusing,
    reservation_answer,
)

ADD_ON_QUESTION = {"addonName": "vpc-cni", "kubernetesVersion": "1.34"}


@given(parts=st.lists(st.lists(st.integers(), max_size=3), min_size=1, max_size=5))
def test_every_item_of_every_page_is_seen_once_and_in_order(parts):
    def call(*, token=0, size):
        assert size == 3
        return {"items": parts[token], "token": token + 1 if token + 1 < len(parts) else None}

    found = [item for answer in pages(call, "token", size=3) for item in answer["items"]]
    assert found == [item for part in parts for item in part]


def test_an_instance_type_has_the_zones_that_offer_it():
    with mock_aws():
        ec2 = boto3.client("ec2", region_name="us-east-1")
        assert offered_zones(ec2, "p5.48xlarge") == {f"us-east-1{letter}" for letter in "abcdef"}
        assert offered_zones(ec2, "p6-b200.48xlarge") == {"us-east-1c"}
        assert offered_zones(ec2, "g6.madeup") == frozenset()


@pytest.mark.parametrize(
    ("family", "has_gpu", "name"),
    [
        ("al2023", True, "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/recommended"),
        ("al2023", False, "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended"),
        ("bottlerocket", True, "/aws/service/bottlerocket/aws-k8s-1.34-nvidia/x86_64/latest"),
        ("bottlerocket", False, "/aws/service/bottlerocket/aws-k8s-1.34/x86_64/latest"),
    ],
)
def test_an_image_release_stands_in_its_own_parameter(family, has_gpu, name):
    last = "image_version" if family == "bottlerocket" else "release_version"
    assert release_parameter("1.34", family, has_gpu=has_gpu) == f"{name}/{last}"
    answer = {"Parameter": {"Value": "1.34.0-20300101"}}  # invented
    with answering("ssm", "get_parameter", ({"Name": f"{name}/{last}"}, answer)) as ssm:
        assert image_release(ssm, "1.34", family, has_gpu=has_gpu) == "1.34.0-20300101"


def test_a_version_of_kubernetes_without_images_is_told_with_the_parameter():
    with mock_aws(), pytest.raises(CloudUnanswered, match=r"publishes no al2023 release for Kubernetes 9\.99: /aws"):
        image_release(boto3.client("ssm", region_name=REGION), "9.99", "al2023", has_gpu=True)


def test_an_add_on_has_the_versions_that_go_with_kubernetes_and_its_default():
    first = add_on_page("vpc-cni", ("v3", ["1.34", "1.35"], "1.35"), ("v2", ["1.34"], "1.34")) | {"nextToken": "more"}
    second = add_on_page("vpc-cni", ("v1", ["1.34"], ""), ("v0", ["1.33"], "1.33"))
    asked = (ADD_ON_QUESTION, first), ({**ADD_ON_QUESTION, "nextToken": "more"}, second)
    with answering("eks", "describe_addon_versions", *asked) as eks:
        choice = add_on(eks, "vpc-cni", "1.34")
    assert choice.versions == ("v3", "v2", "v1")
    assert choice.default == "v2"


def test_an_add_on_without_a_default_has_none_and_one_without_versions_is_told():
    with answering(
        "eks", "describe_addon_versions", (ADD_ON_QUESTION, add_on_page("vpc-cni", ("v1", ["1.34"], "")))
    ) as eks:
        assert add_on(eks, "vpc-cni", "1.34").default is None
    none = answering("eks", "describe_addon_versions", (ADD_ON_QUESTION, {"addons": []}))
    words = r"no version of the add-on vpc-cni for Kubernetes 1\.34"
    with none as eks, pytest.raises(CloudUnanswered, match=words):
        add_on(eks, "vpc-cni", "1.34")


QUESTION = {"CapacityReservationIds": [RESERVATION]}


def test_a_capacity_block_has_its_zone_its_end_and_what_is_left_of_it():
    end = datetime(2030, 2, 1, 11, 30, tzinfo=UTC)
    with answering("ec2", "describe_capacity_reservations", (QUESTION, reservation_answer(EndDate=end))) as ec2:
        found = reservation(ec2, RESERVATION)
    assert (found.instance_type, found.zone, found.total, found.available) == ("p5.48xlarge", f"{REGION}a", 4, 3)
    assert found.is_block
    assert found.is_usable
    assert found.ends_at == end
    assert found.placement_group_arn is None


@pytest.mark.parametrize("changes", [{"State": "scheduled"}, {"AvailableInstanceCount": 0}])
def test_a_reservation_that_has_not_begun_or_is_full_is_not_usable(changes):
    answer = reservation_answer(ReservationType="default", **changes)
    with answering("ec2", "describe_capacity_reservations", (QUESTION, answer)) as ec2:
        found = reservation(ec2, RESERVATION)
    assert not found.is_usable
    assert not found.is_block


def test_a_reservation_that_is_not_there_is_told_with_its_id():
    none = answering("ec2", "describe_capacity_reservations", (QUESTION, {"CapacityReservations": []}))
    with none as ec2, pytest.raises(CloudUnanswered, match=f"no reservation {RESERVATION}"):
        reservation(ec2, RESERVATION)


def test_a_missing_permission_is_told_as_one():
    denied = refusing("ec2", "describe_capacity_reservations", "UnauthorizedOperation")
    with denied as ec2, pytest.raises(CloudUnanswered, match="lacks that permission") as raised:
        reservation(ec2, RESERVATION)
    assert raised.value.code == "UnauthorizedOperation"
    assert "describe_capacity_reservations" in str(raised.value)
    assert RESERVATION in str(raised.value)


def test_a_cloud_that_can_not_be_reached_is_told_without_a_trace():
    def describe():
        raise EndpointConnectionError(endpoint_url="https://nowhere.invalid")

    with pytest.raises(CloudUnanswered, match="AWS can't be asked"):
        ask(describe)
