"""The security group of a Lustre file system: its ports, to itself and to the nodes, both ways."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pulumi
from pulumi_aws import ec2, vpc

from fleet.cloud.lustre_ports import EVERY_PROTOCOL, LUSTRE_PORTS


@dataclass(frozen=True, slots=True)
class LustreGroupArgs:
    """Between whom the ports are opened."""

    vpc_id: pulumi.Input[str]
    node_groups: Mapping[str, pulumi.Input[str]]
    """Word -> id of a security group of nodes. The word is in the names of rules, so a pool more or less moves none.

    The groups' own rules must be resources of their own too, or each takes the other's away."""
    has_efa: bool
    """EFA is all traffic, with itself and with the groups of the nodes."""


@dataclass(frozen=True, slots=True)
class _Traffic:
    """What is let through: a protocol, and ports where it has some."""

    word: str
    protocol: str
    first: int | None = None
    last: int | None = None


class LustreGroup(pulumi.ComponentResource):
    """A group whose rules are resources of their own, so that nodes' groups can name it and it them."""

    def __init__(self, name: str, args: LustreGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:LustreGroup", name, None, opts)
        self.group = ec2.SecurityGroup(
            f"{name}-group",
            description="Lustre: the file system, its servers among themselves and the nodes",
            vpc_id=args.vpc_id,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.id: pulumi.Output[str] = self.group.id
        self.rules: list[pulumi.Resource] = []
        for traffic in _traffic(has_efa=args.has_efa):
            self._open(f"{name}-self-{traffic.word}", self.id, self.id, traffic)
            for word, nodes in args.node_groups.items():
                self._open(f"{name}-from-{word}-{traffic.word}", self.id, nodes, traffic)
                self._open(f"{name}-at-{word}-{traffic.word}", nodes, self.id, traffic)
        self.register_outputs({"groupId": self.id})

    def _open(self, name: str, group: pulumi.Input[str], peer: pulumi.Input[str], traffic: _Traffic) -> None:
        """Both ways, as the other side of the rule is a group and answers as well as asks."""
        what = "all traffic" if traffic.first is None else f"TCP {traffic.word}"
        child = pulumi.ResourceOptions(parent=self)
        rules = (vpc.SecurityGroupIngressRule, "in"), (vpc.SecurityGroupEgressRule, "out")
        for rule, way in rules:
            self.rules.append(
                rule(
                    f"{name}-{way}",
                    security_group_id=group,
                    referenced_security_group_id=peer,
                    ip_protocol=traffic.protocol,
                    from_port=traffic.first,
                    to_port=traffic.last,
                    description=f"Lustre: {what}",
                    opts=child,
                )
            )


def _traffic(*, has_efa: bool) -> Iterator[_Traffic]:
    """The ports of Lustre stand there with EFA too: it begins over TCP, and drift checks look for them."""
    for first, last in LUSTRE_PORTS:
        yield _Traffic(str(first) if first == last else f"{first}-{last}", "tcp", first, last)
    if has_efa:
        yield _Traffic("all", EVERY_PROTOCOL)
