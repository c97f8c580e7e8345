"""The ports by which nodes and a Lustre file system reach each other, as its security groups open them.

Groups count when the file system is made: its network interfaces keep them, and it doesn't say later which they were,
so a mistake here costs a new file system.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

from fleet.cloud.finding import CloudRule, Finding, Grade

LUSTRE_PORTS: tuple[tuple[int, int], ...] = ((988, 988), (1018, 1023))
"""TCP, first and last, from the file system's own group and from the nodes."""
EVERY_PROTOCOL = "-1"
SELF = "self"

_GUIDE = "FSx for Lustre guide, limiting access with security groups"

PORTS = CloudRule(
    "lustre-ports",
    Grade.HIGH,
    "The groups of a file system let TCP 988 and 1018-1023 in from the file system itself and from its nodes",
    "open TCP 988 and 1018-1023 from the group itself and from the group of the nodes, before the file system is made",
    f"{_GUIDE}; aws-fsx-csi-driver#32, hpc-recipes#50, bottlerocket#3459",
)
EFA_TRAFFIC = CloudRule(
    "lustre-efa-traffic",
    Grade.HIGH,
    "The group of a file system with EFA lets all traffic in from itself and out to itself",
    "add an ingress and an egress rule of all protocols with the group itself as the other side",
    "FSx for Lustre guide, troubleshooting: insufficient security group permissions for an EFA-enabled file system",
)


@dataclass(frozen=True, slots=True)
class Opening:
    """One rule of a security group."""

    peer: str
    """The other side: `SELF`, the id of a group, a prefix list or a range of addresses."""
    protocol: str
    """``tcp``, ``6``, `EVERY_PROTOCOL`, …"""
    first_port: int = 0
    last_port: int = 65535
    is_ingress: bool = True

    def lets_in(self, first: int, last: int) -> bool:
        """Whether it lets all TCP ports of a range in."""
        if not self.is_ingress:
            return False
        if self.protocol == EVERY_PROTOCOL:
            return True
        return self.protocol in ("tcp", "6") and self.first_port <= first and last <= self.last_port


def port_findings(openings: Sequence[Opening], *, has_efa: bool, own: Sequence[IPv4Network] = ()) -> Iterator[Finding]:
    """What the rules of all groups of a file system leave shut that it needs; ``own`` = the ranges of its subnets.

    A range that is open for the nodes only is found: the file system's servers talk to each other as well. A range of
    addresses that holds its subnets lets them in. Which peer are the nodes is not known here, so any other peer counts
    as them.
    """
    peers = {opening.peer for opening in openings if opening.is_ingress}
    itself = {peer for peer in peers if peer == SELF or _holds(peer, own)}
    for side, those in (
        ("from the file system itself", [itself]),
        ("from any node", [{item} for item in peers - {SELF}]),
    ):
        shut = [ports for ports in LUSTRE_PORTS if not any(_is_open(openings, group, ports) for group in those)]
        if shut:
            evidence = {"peers": ", ".join(sorted(peers))}
            yield Finding(PORTS, f"TCP {_ranges(shut)} is not open {side}", evidence=evidence)
    if has_efa:
        yield from _efa_traffic(openings)


def way_out_findings(openings: Sequence[Opening], *, own: Sequence[IPv4Network] = ()) -> Iterator[Finding]:
    """What the rules of the groups keep in: the servers of a file system call each other and its nodes.

    Where the ranges of its subnets are not known, any range of addresses may hold them.
    """
    out = [replace(opening, is_ingress=True) for opening in openings if not opening.is_ingress]
    peers = {opening.peer for opening in out}
    itself = {peer for peer in peers if peer == SELF or (_holds(peer, own) if own else "/" in peer)}
    for side, those in (("to itself", [itself]), ("to any node", [{item} for item in peers - {SELF}])):
        shut = [ports for ports in LUSTRE_PORTS if not any(_is_open(out, group, ports) for group in those)]
        if shut:
            yield Finding(PORTS, f"TCP {_ranges(shut)} of the file system is not open {side}", "open them outwards too")


def _ranges(ports: Sequence[tuple[int, int]]) -> str:
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ports)


def _holds(peer: str, own: Sequence[IPv4Network]) -> bool:
    """Whether a peer is a range of addresses that holds all of some ranges."""
    try:
        found = IPv4Network(peer.strip(), strict=False)
    except ValueError:  # a group, a prefix list, a range of IPv6
        return False
    return found.prefixlen == 0 or (bool(own) and all(item.subnet_of(found) for item in own))


def _is_open(openings: Sequence[Opening], peers: Collection[str], ports: tuple[int, int]) -> bool:
    """Whether a side comes in by all ports of a range under one of its names, by one rule or by several together."""
    return all(
        any(opening.peer in peers and opening.lets_in(port, port) for opening in openings)
        for port in range(ports[0], ports[1] + 1)
    )


def _efa_traffic(openings: Sequence[Opening]) -> Iterator[Finding]:
    for is_ingress, way in ((True, "in from"), (False, "out to")):
        if not any(
            opening.peer == SELF and opening.protocol == EVERY_PROTOCOL and opening.is_ingress == is_ingress
            for opening in openings
        ):
            yield Finding(EFA_TRAFFIC, f"no rule lets all traffic {way} the group itself")


RULES: tuple[CloudRule, ...] = (PORTS, EFA_TRAFFIC)
