"""How nodes are bought: reservations, Capacity Blocks, spot, placement groups and the zones that go with them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.hardware import InstanceType
from fleet.spec import Purchase

CapacityType = Literal["ON_DEMAND", "SPOT", "CAPACITY_BLOCK"]
CAPACITY_TYPES: dict[Purchase, CapacityType] = {
    "on-demand": "ON_DEMAND",
    "spot": "SPOT",
    "capacity-block": "CAPACITY_BLOCK",
}
BLOCK_MARKET_TYPE = "capacity-block"
_PLAIN_MARKET_TYPES = (None, "on-demand")
"""What a template may say for every other group: spot is asked for by the group's capacity type alone."""
_BLOCKS = "EKS user guide, managed node groups with Capacity Blocks; botocore eks"
_LOST = "eksctl#8320, eksctl#8542, eksctl#7906, terraform-aws-eks#1897"

BLOCK_TARGET = CloudRule(
    "capacity-block-target",
    Grade.CRITICAL,
    "A node group on a Capacity Block names its reservation",
    "set capacity_reservation_target with the id of the block's reservation",
    f"{_LOST}; {_BLOCKS}",
)
BLOCK_MARKET = CloudRule(
    "capacity-block-market",
    Grade.HIGH,
    "Capacity type of the node group and market type of its launch template say the same",
    "a Capacity Block has capacity type CAPACITY_BLOCK and market type capacity-block; all else leaves market type out",
    _BLOCKS,
)
BLOCK_TYPE = CloudRule(
    "capacity-block-instance-type",
    Grade.HIGH,
    "On a Capacity Block the launch template names the instance type, and the node group none",
    "put the reservation's instance type into the launch template and leave instance_types out",
    f"{_BLOCKS}; terraform-aws-eks leaves it out as well",
)
BLOCK_DESIRED = CloudRule(
    "capacity-block-upgrade",
    Grade.LOW,
    "A group on a Capacity Block stands at 0 nodes while its version changes",
    "set desired and min to 0 before an upgrade: a block has no instance to spare",
    _BLOCKS,
)
RESERVATION_ZONE = CloudRule(
    "reservation-zone",
    Grade.HIGH,
    "Nodes of a reservation stand in the reservation's zone and in no other",
    "give the node group the one subnet of the reservation's zone",
    f"{_BLOCKS}; EC2 user guide, capacity reservations",
)
RESERVATION_TYPE = CloudRule(
    "reservation-instance-type",
    Grade.HIGH,
    "Nodes of a reservation are of the instance type that it holds",
    "take the reservation's instance type",
    "EC2 user guide, capacity reservations: attributes have to match",
)
RESERVATION_SPOT = CloudRule(
    "reservation-with-spot",
    Grade.HIGH,
    "Spot nodes use no reservation",
    "buy on-demand with the reservation, or drop the reservation",
    "EC2 user guide, capacity reservations",
)
NOT_SOLD = CloudRule(
    "purchase-not-sold",
    Grade.HIGH,
    "The instance type is sold in the way it is bought",
    "choose a way in which the type is sold",
    "EC2 DescribeInstanceTypes, SupportedUsageClasses",
)
PLACEMENT_ZONES = CloudRule(
    "placement-group-zones",
    Grade.HIGH,
    "A cluster placement group has nodes of one zone",
    "give the node group one subnet, and each zone a group of its own",
    "terraform-aws-eks#3044, terraform-aws-eks#3090",
)
PLACEMENT_RESERVATION = CloudRule(
    "placement-group-with-reservation",
    Grade.HIGH,
    "A reservation brings its own placement; no placement group stands beside it",
    "leave the placement group out, or reserve into that group",
    "terraform-aws-eks#3730; eksctl makes none beside a reservation",
)
PLACEMENT_STRATEGY = CloudRule(
    "placement-group-strategy",
    Grade.HIGH,
    "The instance type can stand in a placement group of that strategy",
    "take a strategy that the type knows, or none",
    "EC2 DescribeInstanceTypes, PlacementGroupInfo",
)
EFA_ZONES = CloudRule(
    "efa-zones",
    Grade.HIGH,
    "Nodes that talk over EFA stand in one zone",
    "make one node group for each zone: EFA traffic does not leave the subnet",
    "EC2 user guide, EFA limitations; eksctl enforces one zone",
)


@dataclass(frozen=True, slots=True)
class Buying:
    """How a node group and its launch template say that nodes are bought."""

    capacity_type: str = "ON_DEMAND"
    market_type: str | None = None
    """``None`` = the template has no market options."""
    reservation_id: str | None = None
    """``None`` = the template targets no reservation by its id."""
    other_reservation: str | None = None
    """A group of reservations, or a preference that takes nothing but reservations; ``None`` = neither."""

    @property
    def reservation(self) -> str | None:
        """What it takes of what is reserved, in whichever way it says so."""
        return self.reservation_id or self.other_reservation

    @property
    def is_block(self) -> bool:
        """Whether either of the two speaks of a Capacity Block."""
        return self.capacity_type == "CAPACITY_BLOCK" or self.market_type == BLOCK_MARKET_TYPE

    @classmethod
    def of(cls, purchase: Purchase, reservation_id: str | None) -> "Buying":
        """What is right for a way of buying."""
        plain = cls(CAPACITY_TYPES[purchase], None, reservation_id)
        return replace(plain, market_type=BLOCK_MARKET_TYPE) if purchase == "capacity-block" else plain


def target_findings(buying: Buying) -> Iterator[Finding]:
    """Whether a Capacity Block has its reservation, and spot has none."""
    if buying.is_block and not buying.reservation_id:
        yield Finding(BLOCK_TARGET, "a Capacity Block without a reservation: nodes would not start")
    if buying.capacity_type == "SPOT" and buying.reservation:
        yield Finding(RESERVATION_SPOT, f"spot nodes target the reservation {buying.reservation}")


def market_findings(buying: Buying) -> Iterator[Finding]:
    """Whether capacity type and market type say the same."""
    is_block = buying.capacity_type == "CAPACITY_BLOCK"
    right = (BLOCK_MARKET_TYPE,) if is_block else _PLAIN_MARKET_TYPES
    if buying.market_type not in right:
        message = f"the node group's capacity type is {buying.capacity_type} and the launch template's market type"
        yield Finding(BLOCK_MARKET, f"{message} {buying.market_type or 'not set'}")


def block_type_findings(
    buying: Buying, *, template_type: str | None, group_types: Collection[str]
) -> Iterator[Finding]:
    """Whether a Capacity Block's instance type stands where it has to; both places at once is another rule's."""
    if buying.is_block and not template_type and group_types:
        named = ", ".join(sorted(group_types))
        yield Finding(BLOCK_TYPE, f"the node group names {named} and the launch template no instance type")


def upgrade_findings(buying: Buying, *, is_upgrade: bool, desired_nodes: int) -> Iterator[Finding]:
    """Whether an upgrade of a group on a Capacity Block has to wait for instances that don't exist."""
    if buying.is_block and is_upgrade and desired_nodes:
        yield Finding(BLOCK_DESIRED, f"the version changes while {desired_nodes} nodes are wanted")


def reservation_zone_findings(reservation_zone: str, zones: Collection[str]) -> Iterator[Finding]:
    """Whether the nodes of a reservation stand where it is."""
    if set(zones) != {reservation_zone}:
        named = ", ".join(sorted(set(zones))) or "no zone"
        yield Finding(RESERVATION_ZONE, f"the reservation is in {reservation_zone} and the nodes in {named}")


def reservation_type_findings(reserved: str, types: Collection[str]) -> Iterator[Finding]:
    """Whether a reservation holds what its nodes are."""
    others = sorted(set(types) - {reserved})
    if others:
        yield Finding(RESERVATION_TYPE, f"the reservation holds {reserved} and the nodes are {', '.join(others)}")


def sold_findings(shape: InstanceType, buying: Buying) -> Iterator[Finding]:
    """Whether the type is sold that way."""
    wanted = next((name for name, type_ in CAPACITY_TYPES.items() if type_ == buying.capacity_type), None)
    if wanted not in shape.purchase_classes:
        message = f"{shape.name} is not sold as {wanted or buying.capacity_type}"
        yield Finding(NOT_SOLD, f"{message}; it is sold as {', '.join(shape.purchase_classes)}")


def placement_findings(
    strategy: str | None,
    *,
    zones: Collection[str],
    reservation_id: str | None,
    is_reserved_into: bool = False,
) -> Iterator[Finding]:
    """What is wrong with a placement group; ``None`` = there is none.

    ``is_reserved_into``: the reservation holds instances of this very group.
    """
    if strategy is None:
        return
    if reservation_id and not is_reserved_into:
        message = f"a placement group ({strategy}) beside the reservation {reservation_id}"
        yield Finding(PLACEMENT_RESERVATION, f"{message}: instances would have to match both")
    if strategy == "cluster" and len(set(zones)) > 1:
        yield Finding(PLACEMENT_ZONES, f"a cluster placement group with nodes in {', '.join(sorted(set(zones)))}")


def shared_placement_findings(zones: Collection[str], others: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Whether all who share a cluster placement group stand in one zone; ``others`` by name, with their zones."""
    away = {name: sorted(set(found) - set(zones)) for name, found in sorted(others.items())}
    named = [f"those of {name} in {', '.join(found)}" for name, found in away.items() if found]
    if len(set(zones)) == 1 and named:
        message = f"a cluster placement group with these nodes in {', '.join(zones)} and {', '.join(named)}"
        yield Finding(PLACEMENT_ZONES, message)


def strategy_findings(shape: InstanceType, strategy: str) -> Iterator[Finding]:
    """Whether the type may stand in such a placement group."""
    if strategy not in shape.placement_strategies:
        known = ", ".join(shape.placement_strategies) or "none"
        yield Finding(PLACEMENT_STRATEGY, f"{shape.name} in a placement group '{strategy}'; it knows {known}")


def efa_zone_findings(zones: Collection[str], *, has_efa: bool) -> Iterator[Finding]:
    """Whether nodes with EFA reach each other."""
    if has_efa and len(set(zones)) > 1:
        yield Finding(EFA_ZONES, f"one node group with EFA in {', '.join(sorted(set(zones)))}")


RULES: tuple[CloudRule, ...] = (
    BLOCK_TARGET,
    BLOCK_MARKET,
    BLOCK_TYPE,
    BLOCK_DESIRED,
    RESERVATION_ZONE,
    RESERVATION_TYPE,
    RESERVATION_SPOT,
    NOT_SOLD,
    PLACEMENT_ZONES,
    PLACEMENT_RESERVATION,
    PLACEMENT_STRATEGY,
    EFA_ZONES,
)
