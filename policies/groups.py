"""A node group with everything that it stands on: launch template, cluster, subnets, placement group."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Network

from fleet.cloud.interfaces import EFA_TYPES, Interface
from fleet.cloud.node_types import is_gpu_type
from fleet.cloud.purchase import Buying
from fleet.hardware import InstanceType, instance_types
from policies.adapter import Props, Seen, Stack
from policies.reading import Unreadable, at, flag, number, parts, text, texts

NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CLUSTER = "aws:eks/cluster:Cluster"
SUBNET = "aws:ec2/subnet:Subnet"
PLACEMENT_GROUP = "aws:ec2/placementGroup:PlacementGroup"
RESERVATIONS = (
    "aws:ec2/capacityReservation:CapacityReservation",
    "aws:ec2/capacityBlockReservation:CapacityBlockReservation",
)
_NOTHING: Props = {}
_ONLY_RESERVED = "capacity-reservations-only"
_ADDRESSES = (
    "associateCarrierIpAddress",
    "ipv4AddressCount",
    "ipv4Addresses",
    "ipv4PrefixCount",
    "ipv4Prefixes",
    "ipv6AddressCount",
    "ipv6Addresses",
    "ipv6PrefixCount",
    "ipv6Prefixes",
    "primaryIpv6",
    "privateIpAddress",
)
"""Keys by which an interface asks for addresses of its own."""
_NO_ADDRESS = ("", "false", "0")
_OUTSIDE = ("the zone of a subnet outside of the stack", "the zone of another subnet outside of the stack")


@dataclass(frozen=True)
class Group:
    """A node group. Each part is looked up when a rule asks for it, so that an unknown one stops that rule alone."""

    seen: Seen

    @property
    def props(self) -> Props:
        """The node group's own properties."""
        return self.seen.props

    @cached_property
    def template(self) -> Seen | None:
        """Its launch template, where it stands in the stack."""
        return next(iter(self.seen.links("launchTemplate", TEMPLATE)), None)

    @property
    def template_props(self) -> Props:
        """The properties of its launch template; nothing where there is none."""
        return self.template.props if self.template else _NOTHING

    @property
    def has_template(self) -> bool:
        """Whether it has a launch template anywhere."""
        return at(self.props, "launchTemplate") is not None

    @property
    def cluster(self) -> Seen | None:
        """Its cluster, where it stands in the stack."""
        return next(iter(self.seen.links("clusterName", CLUSTER)), None)

    @property
    def template_type(self) -> str | None:
        """The instance type that the launch template names."""
        return text(self.template_props, "instanceType")

    @property
    def group_types(self) -> tuple[str, ...]:
        """The instance types that the node group names."""
        return texts(self.props, "instanceTypes")

    @property
    def types(self) -> tuple[str, ...]:
        """Every instance type that its nodes may be."""
        return tuple(dict.fromkeys((*((self.template_type,) if self.template_type else ()), *self.group_types)))

    @property
    def shapes(self) -> tuple[InstanceType, ...]:
        """The GPU instance types that its nodes may be, as far as the table knows them."""
        return tuple(instance_types()[name] for name in self.types if name in instance_types())

    @property
    def has_gpus(self) -> bool:
        """Whether some of its nodes may have GPUs, of the table or not."""
        return any(is_gpu_type(name) for name in self.types)

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones where its nodes may stand; a subnet outside of the stack counts as a zone that nobody knows."""
        subnets = self.seen.links("subnetIds", SUBNET)
        asked = text(self.template_props, "placement", "availabilityZone")
        outside = _OUTSIDE[: self.seen.outside("subnetIds", SUBNET)]
        return tuple(sorted({*map(_zone, subnets), *((asked,) if asked else ()), *outside}))

    @property
    def ami_type(self) -> str | None:
        """The AMI type; an image of the template's own stands for it."""
        own = text(self.props, "amiType")
        return "CUSTOM" if own is None and text(self.template_props, "imageId") else own

    @property
    def interfaces(self) -> tuple[Interface, ...]:
        """The network interfaces that the launch template asks for."""
        return interfaces_of(self.template_props)

    @property
    def has_efa(self) -> bool:
        """Whether its nodes get EFA interfaces, on an instance that has EFA."""
        wants = any(item.type in EFA_TYPES for item in self.interfaces)
        return wants and any(shape.supports_efa for shape in self.shapes)

    @property
    def reservations(self) -> tuple[Seen, ...]:
        """The reservations of the stack that its launch template targets."""
        return self.template.links("capacityReservationSpecification", *RESERVATIONS) if self.template else ()

    @property
    def reservation_id(self) -> str | None:
        """The capacity reservation that its nodes take."""
        path = ("capacityReservationSpecification", "capacityReservationTarget", "capacityReservationId")
        return text(self.template_props, *path)

    @property
    def other_reservation(self) -> str | None:
        """A group of reservations that its nodes take, or their wish for nothing but reservations."""
        asked = at(self.template_props, "capacityReservationSpecification") or {}
        only = text(asked, "capacityReservationPreference") == _ONLY_RESERVED
        group = text(asked, "capacityReservationTarget", "capacityReservationResourceGroupArn")
        return group or (_ONLY_RESERVED if only else None)

    @property
    def buying(self) -> Buying:
        """How its nodes are bought."""
        market = text(self.template_props, "instanceMarketOptions", "marketType")
        capacity_type = text(self.props, "capacityType") or "ON_DEMAND"
        return Buying(capacity_type, market, self.reservation_id, self.other_reservation)


def groups_in(stack: Stack) -> tuple[Group, ...]:
    """All node groups of a stack."""
    return tuple(Group(seen) for seen in stack.of(NODE_GROUP))


def addresses_of(subnet: Seen) -> IPv4Network | None:
    """The range of a subnet; ``None`` = it is not written down."""
    cidr = text(subnet.props, "cidrBlock")
    if cidr is None:
        return None
    try:
        return IPv4Network(cidr, strict=False)
    except ValueError as error:
        raise Unreadable(("cidrBlock",), cidr, "a range of IPv4 addresses") from error


def _asks(value: object) -> bool:
    """Whether an address is asked for: no empty list, no number zero, however it is written."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return len(value) > 0
    return bool(value) and str(value).casefold() not in _NO_ADDRESS


def _zone(subnet: Seen) -> str:
    """The zone of a subnet: by its name, else by its id, else a zone that only this subnet has."""
    known = text(subnet.props, "availabilityZone") or text(subnet.props, "availabilityZoneId")
    return known or f"the zone of {subnet.name}"


def interfaces_of(template: Props) -> tuple[Interface, ...]:
    """The network interfaces of a launch template, without their security groups."""
    return tuple(_interface(item) for item in parts(template, "networkInterfaces"))


def _interface(item: Props) -> Interface:
    return Interface(
        card=number(item, "networkCardIndex") or 0,
        device=number(item, "deviceIndex") or 0,
        type=text(item, "interfaceType") or "interface",
        wants_public_ip=flag(item, "associatePublicIpAddress"),
        addresses=tuple(key for key in _ADDRESSES if _asks(at(item, key))),
    )
