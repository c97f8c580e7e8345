"""A node group with everything that it stands on: launch template, cluster, subnets, placement group."""

from dataclasses import dataclass
from functools import cached_property

from fleet.cloud.interfaces import EFA_TYPES, Interface
from fleet.cloud.purchase import Buying
from fleet.hardware import InstanceType, instance_types
from policies.adapter import Props, Seen, Stack
from policies.reading import at, flag, number, parts, text, texts

NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
CLUSTER = "aws:eks/cluster:Cluster"
SUBNET = "aws:ec2/subnet:Subnet"
PLACEMENT_GROUP = "aws:ec2/placementGroup:PlacementGroup"
RESERVATION = "aws:ec2/capacityReservation:CapacityReservation"
_NOTHING: Props = {}


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
    def shape(self) -> InstanceType | None:
        """The GPU instance type of its nodes; ``None`` = they have no GPU that we know."""
        names = (self.template_type or "", *self.group_types)
        return next((instance_types()[name] for name in names if name in instance_types()), None)

    @property
    def zones(self) -> tuple[str, ...]:
        """The zones of its subnets, as far as the subnets stand in the stack."""
        found = (text(subnet.props, "availabilityZone") for subnet in self.seen.links("subnetIds", SUBNET))
        return tuple(sorted({zone for zone in found if zone}))

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
        return wants and self.shape is not None and self.shape.supports_efa

    @property
    def reservation_id(self) -> str | None:
        """The capacity reservation that its nodes take."""
        path = ("capacityReservationSpecification", "capacityReservationTarget", "capacityReservationId")
        return text(self.template_props, *path)

    @property
    def buying(self) -> Buying:
        """How its nodes are bought."""
        market = text(self.template_props, "instanceMarketOptions", "marketType")
        return Buying(text(self.props, "capacityType") or "ON_DEMAND", market, self.reservation_id)


def groups_in(stack: Stack) -> tuple[Group, ...]:
    """All node groups of a stack."""
    return tuple(Group(seen) for seen in stack.of(NODE_GROUP))


def interfaces_of(template: Props) -> tuple[Interface, ...]:
    """The network interfaces of a launch template, without their security groups."""
    return tuple(_interface(item) for item in parts(template, "networkInterfaces"))


def _interface(item: Props) -> Interface:
    return Interface(
        card=number(item, "networkCardIndex") or 0,
        device=number(item, "deviceIndex") or 0,
        type=text(item, "interfaceType") or "interface",
        wants_public_ip=flag(item, "associatePublicIpAddress"),
    )
