"""The network under the nodes: how a range is cut into subnets, whether they hold every address that nodes and pods
take, who reaches the cluster's API, and what EFA traffic needs of a security group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.interfaces import Interface
from fleet.cloud.lustre_ports import EVERY_PROTOCOL, SELF, Opening

RESERVED_PER_SUBNET = 5
"""Addresses of each subnet that the cloud keeps."""
PREFIX_ADDRESSES = 16
"""Prefix delegation gives pods /28 blocks."""
PODS_PER_NODE = 110
"""The largest number of pods that Kubernetes supports on a node, unless it is told otherwise."""
DAEMON_PODS = 16
"""Pods that stand on every node: network, storage, devices, metrics."""
OTHER_ADDRESSES = 32
"""In each private subnet, for what is no node: the control plane's interfaces, endpoints, a file system, room."""
WORLD_PREFIX = 8
"""A shorter prefix than this names no network of anybody: two /1 are the whole internet."""
WORLD_PREFIX_6 = 20
"""The same for IPv6: providers have /20 and longer, and all public addresses are one /3."""
_PRIVATE_6 = IPv6Network("fc00::/7")
ZONE_LETTERS = "abcdefg"
"""Each zone has its own eighth of the range, the last eighth is the public subnets'."""

_VPC = "VPC user guide, subnet sizing; EKS best practices, IP address utilization"
_EKS = "EKS user guide, cluster API server endpoint"

SUBNET_SIZE = CloudRule(
    "subnet-too-small",
    Grade.HIGH,
    "A subnet has an address for every interface and pod of the nodes that may stand in it",
    "take a larger network, fewer nodes, or efa-only interfaces, which have no address",
    f"dstack#1804, terraform-aws-eks#3653; {_VPC}",
)
PUBLIC_NODES = CloudRule(
    "nodes-in-public-subnet",
    Grade.HIGH,
    "Nodes stand in private subnets",
    "give the node group subnets that map no public IP",
    "EKS best practices, network security",
)
ENDPOINT_OPEN = CloudRule(
    "cluster-endpoint-open",
    Grade.CRITICAL,
    "A public cluster endpoint names the networks that reach it",
    "list the networks of your offices and runners, or make the endpoint private",
    _EKS,
)
ENDPOINT_PRIVATE = CloudRule(
    "cluster-endpoint-not-private",
    Grade.MEDIUM,
    "Nodes reach the cluster's API inside the network",
    "set endpoint_private_access; nodes in private subnets would go out and in again",
    _EKS,
)
WORLD_INGRESS = CloudRule(
    "security-group-open",
    Grade.HIGH,
    "No security group lets everybody in",
    "name the group or the network that has to come in",
    "EKS best practices, network security",
)
EFA_SELF = CloudRule(
    "efa-security-group-self",
    Grade.HIGH,
    "The security group of EFA interfaces lets all traffic in from itself and out to itself",
    "add an ingress and an egress rule of all protocols with the group itself as the other side; "
    "an egress to 0.0.0.0/0 is not enough",
    "EC2 user guide, EFA; aws-parallelcluster#3590; eksctl EFAIngressSelf and EFAEgressSelf",
)


@dataclass(frozen=True, slots=True)
class SubnetPlan:
    """The subnets of one zone."""

    zone: str
    private: IPv4Network
    """Nodes, pods, the control plane's interfaces, endpoints, file systems."""
    public: IPv4Network
    """NAT and load balancers."""


@dataclass(frozen=True, slots=True)
class NodeDemand:
    """Nodes of one kind and the addresses that each of them takes."""

    name: str
    nodes: int
    """The most that may stand in one subnet at once."""
    address_interfaces: int = 1
    """Network interfaces that take an address: all but ``efa-only`` ones."""
    pods: int = PODS_PER_NODE
    """The most pods of one node."""

    def addresses_per_node(self, *, prefix_delegation: bool, ipv4_per_interface: int = 50) -> int:
        """With prefix delegation whole /28 blocks and a warm one; without it interfaces full of addresses, one warm."""
        if prefix_delegation:
            return self.address_interfaces + PREFIX_ADDRESSES * (-(-self.pods // PREFIX_ADDRESSES) + 1)
        full = -(-self.pods // (ipv4_per_interface - 1)) + 1
        return (self.address_interfaces - 1) + full * ipv4_per_interface


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Who reaches the cluster's API."""

    is_public: bool
    is_private: bool
    public_cidrs: tuple[str, ...] = ()
    """Empty with a public endpoint = everybody, which is the cloud's default."""


def subnet_plan(network: IPv4Network, zones: Sequence[str]) -> tuple[SubnetPlan, ...]:
    """The subnets of each zone; a zone's place follows from its letter alone, so others may come and go.

    Raises:
        ValueError: the network is too small to be cut, or a zone ends in a letter past ``g``.
    """
    if network.prefixlen > 22:
        raise ValueError(f"{network} is too small: its subnets would be smaller than /28; take /22 or larger")
    eighths = list(network.subnets(prefixlen_diff=3))
    public = list(eighths[-1].subnets(prefixlen_diff=3))
    plans = []
    for zone in zones:
        index = ZONE_LETTERS.find(zone[-1:])
        if index < 0:
            raise ValueError(f"the zone {zone} has no place; zones end in one of {', '.join(ZONE_LETTERS)}")
        plans.append(SubnetPlan(zone, eighths[index], public[index]))
    return tuple(plans)


def usable_addresses(subnet: IPv4Network) -> int:
    """The addresses of a subnet that can be given out."""
    return max(0, subnet.num_addresses - RESERVED_PER_SUBNET)


def gpu_node_pods(gpus: int, *, shares_per_gpu: int = 1) -> int:
    """The most pods of a GPU node: its taint keeps all away but daemons and those that ask for a GPU or a share."""
    return min(PODS_PER_NODE, DAEMON_PODS + gpus * shares_per_gpu)


def address_interfaces(interfaces: Sequence[Interface]) -> int:
    """How many interfaces of a launch template take an address; a template without any gets one."""
    return sum(item.type != "efa-only" for item in interfaces) or 1


def subnet_findings(
    subnet: IPv4Network, demands: Sequence[NodeDemand], *, prefix_delegation: bool
) -> Iterator[Finding]:
    """Whether a subnet holds what may stand in it; the message names the largest taker."""
    taken = {item.name: item.nodes * item.addresses_per_node(prefix_delegation=prefix_delegation) for item in demands}
    wanted, usable = sum(taken.values()) + OTHER_ADDRESSES, usable_addresses(subnet)
    if wanted <= usable or not taken:
        return
    most = max(demands, key=lambda item: taken[item.name])
    each = most.addresses_per_node(prefix_delegation=prefix_delegation)
    message = f"{subnet} has {usable} addresses, its nodes and pods may take {wanted}"
    detail = f"the most by {most.name}: {most.nodes} nodes with {each} each"
    yield Finding(SUBNET_SIZE, f"{message}; {detail}", evidence={"usable": usable, "wanted": wanted})


def node_subnet_findings(name: str, *, maps_public_ip: bool, leads_outside: bool = False) -> Iterator[Finding]:
    """Whether a subnet that holds nodes gives them public addresses, or stands open to the internet."""
    if maps_public_ip:
        yield Finding(PUBLIC_NODES, f"nodes stand in {name}, which gives each of them a public IP")
    elif leads_outside:
        yield Finding(PUBLIC_NODES, f"nodes stand in {name}, whose route table leads to an internet gateway")


def node_address_findings(interfaces: Sequence[Interface]) -> Iterator[Finding]:
    """Whether the one interface of a node asks for a public address; one of several is another rule's."""
    if len(interfaces) == 1 and interfaces[0].wants_public_ip:
        yield Finding(PUBLIC_NODES, "the launch template gives each node a public IP", "leave it out of the template")


def endpoint_findings(endpoint: Endpoint) -> Iterator[Finding]:
    """Whether the cluster's API is reached by those alone who should."""
    if endpoint.is_public:
        said = endpoint.public_cidrs or ("0.0.0.0/0",)
        wide = world_in(said) or [text for text in said if _range(text) is None]
        if wide:
            shown = ", ".join(wide) if endpoint.public_cidrs else "everybody, for no network is named"
            yield Finding(ENDPOINT_OPEN, f"the cluster endpoint is open to {shown}")
    if not endpoint.is_private:
        yield Finding(ENDPOINT_PRIVATE, "the cluster endpoint has no private access")


def is_world(cidr: str) -> bool:
    """Whether a range of addresses (IPv4 or IPv6) is too wide to be anybody's network."""
    found = _range(cidr)
    if found is None:
        return False
    if isinstance(found, IPv4Network):
        return found.prefixlen < WORLD_PREFIX
    return found.prefixlen < WORLD_PREFIX_6 and not found.subnet_of(_PRIVATE_6)


def world_in(cidrs: Sequence[str]) -> list[str]:
    """The ranges that are too wide, one by one or, where none is, all together."""
    wide = [text for text in cidrs if is_world(text)]
    found = [item for text in cidrs if (item := _range(text)) is not None]
    for version in (IPv4Network, IPv6Network):
        joined = collapse_addresses([item for item in found if isinstance(item, version)])  # type: ignore[type-var]
        if not wide:
            wide = [f"{item} in parts" for item in map(str, joined) if is_world(item)]
    return wide


def _range(cidr: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(cidr.strip(), strict=False)
    except ValueError:
        return None


def ingress_findings(name: str, openings: Sequence[Opening]) -> Iterator[Finding]:
    """Whether a security group lets everybody in."""
    peers: dict[str, list[str]] = {}
    for opening in openings:
        if opening.is_ingress:
            peers.setdefault(_ports(opening), []).append(opening.peer)
    for ports, cidrs in peers.items():
        for peer in world_in(cidrs):
            yield Finding(WORLD_INGRESS, f"the security group {name} lets {peer.strip()} in on {ports}")


def prefix_list_findings(name: str, cidrs: Sequence[str]) -> Iterator[Finding]:
    """Whether a list of ranges holds everybody: whoever names it in a rule lets everybody in."""
    for cidr in world_in(cidrs):
        yield Finding(WORLD_INGRESS, f"the prefix list {name} holds {cidr.strip()}, and a rule that names it is open")


def _ports(opening: Opening) -> str:
    if opening.protocol == EVERY_PROTOCOL:
        return "everything"
    return f"{opening.protocol} {opening.first_port}-{opening.last_port}"


def efa_self_findings(name: str, openings: Sequence[Opening]) -> Iterator[Finding]:
    """Whether a security group of EFA interfaces lets EFA traffic pass in both directions."""
    for is_ingress, way in ((True, "in from"), (False, "out to")):
        if not any(
            item.peer == SELF and item.protocol == EVERY_PROTOCOL and item.is_ingress == is_ingress for item in openings
        ):
            yield Finding(EFA_SELF, f"no rule of the security group {name} lets all traffic {way} the group itself")


RULES: tuple[CloudRule, ...] = (SUBNET_SIZE, PUBLIC_NODES, ENDPOINT_OPEN, ENDPOINT_PRIVATE, WORLD_INGRESS, EFA_SELF)
