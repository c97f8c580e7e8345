"""What the stack's configuration leaves open and AWS knows: versions, image releases, offerings, reservations."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from infra.cloud_client import Answer, CloudUnanswered, Ec2, Eks, Ssm, ask, pages

Family = Literal["al2023", "bottlerocket"]
_NOT_THERE = "ParameterNotFound"


@dataclass(frozen=True, slots=True)
class AddOnChoice:
    """The versions of an EKS add-on that go with one version of Kubernetes."""

    name: str
    default: str | None
    """What EKS would install; ``None`` = it names no default."""
    versions: tuple[str, ...]
    """In the order in which EKS lists them."""


@dataclass(frozen=True, slots=True)
class Reservation:
    """An On-Demand Capacity Reservation or the reservation of a Capacity Block."""

    id: str
    instance_type: str
    zone: str
    state: str
    total: int
    available: int
    is_block: bool
    starts_at: datetime | None
    """``None`` = AWS names no time."""
    ends_at: datetime | None
    """``None`` = it has no end."""
    placement_group_arn: str | None
    """``None`` = its instances stand in no placement group."""

    @property
    def is_usable(self) -> bool:
        """Whether instances can start in it now."""
        return self.state == "active" and self.available > 0


def add_on(eks: Eks, name: str, kubernetes: str) -> AddOnChoice:
    """The versions of an add-on for a version of Kubernetes.

    Raises:
        CloudUnanswered: AWS did not answer, or has no such add-on for that version.
    """
    found = tuple(_versions(eks, name, kubernetes))
    if not found:
        raise CloudUnanswered(f"EKS has no version of the add-on {name} for Kubernetes {kubernetes}")
    default = next((version for version, is_default in found if is_default), None)
    return AddOnChoice(name, default, tuple(version for version, _ in found))


def release_parameter(kubernetes: str, family: Family, *, has_gpu: bool, architecture: str = "x86_64") -> str:
    """The SSM parameter in which AWS publishes the newest image release of nodes."""
    if family == "bottlerocket":
        variant = f"aws-k8s-{kubernetes}-nvidia" if has_gpu else f"aws-k8s-{kubernetes}"
        return f"/aws/service/bottlerocket/{variant}/{architecture}/latest/image_version"
    kind = "nvidia" if has_gpu else "standard"
    path = f"/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023"
    return f"{path}/{architecture}/{kind}/recommended/release_version"


def image_release(ssm: Ssm, kubernetes: str, family: Family, *, has_gpu: bool, architecture: str = "x86_64") -> str:
    """The newest image release of nodes, to be pinned.

    Raises:
        CloudUnanswered: AWS did not answer, or publishes none for that version of Kubernetes.
    """
    name = release_parameter(kubernetes, family, has_gpu=has_gpu, architecture=architecture)
    try:
        return str(ask(ssm.get_parameter, Name=name)["Parameter"]["Value"])
    except CloudUnanswered as error:
        if error.code == _NOT_THERE:
            raise CloudUnanswered(f"AWS publishes no {family} release for Kubernetes {kubernetes}: {name}") from error
        raise


def offered_zones(ec2: Ec2, instance_type: str) -> frozenset[str]:
    """The zones of the client's region that offer an instance type; empty = none does."""
    request = {
        "LocationType": "availability-zone",
        "Filters": [{"Name": "instance-type", "Values": [instance_type]}],
    }
    answers = pages(ec2.describe_instance_type_offerings, "NextToken", **request)
    return frozenset(offer["Location"] for answer in answers for offer in answer["InstanceTypeOfferings"])


def reservation(ec2: Ec2, reservation_id: str) -> Reservation:
    """One reservation by its id.

    Raises:
        CloudUnanswered: AWS did not answer, or has no such reservation in this account and region.
    """
    found = ask(ec2.describe_capacity_reservations, CapacityReservationIds=[reservation_id])["CapacityReservations"]
    if not found:
        raise CloudUnanswered(f"there is no reservation {reservation_id} in this account and region")
    item = found[0]
    return Reservation(
        id=item["CapacityReservationId"],
        instance_type=item["InstanceType"],
        zone=item["AvailabilityZone"],
        state=item["State"],
        total=item["TotalInstanceCount"],
        available=item["AvailableInstanceCount"],
        is_block=item.get("ReservationType") == "capacity-block",
        starts_at=item.get("StartDate"),
        ends_at=item.get("EndDate"),
        placement_group_arn=item.get("PlacementGroupArn") or None,
    )


def _versions(eks: Eks, name: str, kubernetes: str) -> Iterator[tuple[str, bool]]:
    """Each version, and whether it is the default of that version of Kubernetes."""
    request = {"addonName": name, "kubernetesVersion": kubernetes}
    for answer in pages(eks.describe_addon_versions, "nextToken", **request):
        for info in answer["addons"]:
            for version in info["addonVersions"]:
                fits = [item for item in version["compatibilities"] if item["clusterVersion"] == kubernetes]
                if fits:
                    yield version["addonVersion"], _is_default(fits[0])


def _is_default(compatibility: Answer) -> bool:
    return bool(compatibility.get("defaultVersion"))
