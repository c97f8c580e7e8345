"""Who reaches a node and what a node reaches: security groups of its interfaces, and the metadata service."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.interfaces import EFA_TYPES, Interface

_TEMPLATES = "EKS user guide, customize managed nodes with launch templates"

GROUPS_TWICE = CloudRule(
    "security-groups-twice",
    Grade.HIGH,
    "Security groups stand on the interfaces of a launch template, and on the template itself where it has none",
    "with network interfaces, put the groups on each interface and leave vpc_security_group_ids out",
    "terraform-aws-eks#1880, terraform-aws-eks#1907; botocore ec2 RequestLaunchTemplateData, SecurityGroupIds",
)
CLUSTER_GROUP = CloudRule(
    "cluster-security-group-missing",
    Grade.HIGH,
    "Nodes with security groups of their own carry the cluster's security group too",
    "add the cluster's security group: EKS attaches it only where a template names none",
    _TEMPLATES,
)
EFA_GROUP = CloudRule(
    "efa-security-group-missing",
    Grade.HIGH,
    "Every EFA interface carries a security group that lets EFA traffic to itself in and out",
    "attach the EFA security group to every EFA interface",
    "eksctl#3465, eksctl#3467",
)
METADATA_TOKENS = CloudRule(
    "metadata-tokens",
    Grade.HIGH,
    "The metadata service answers with session tokens only (IMDSv2)",
    "set http_tokens to required",
    "EKS best practices, identity; terraform-aws-eks v21 default",
)
METADATA_HOPS = CloudRule(
    "metadata-hop-limit",
    Grade.MEDIUM,
    "Containers don't reach the node's credentials: the hop limit of the metadata service is 1",
    "set http_put_response_hop_limit to 1 and give pods their roles by pod identity",
    "EKS best practices, identity; Karpenter and terraform-aws-eks v21 default",
)


@dataclass(frozen=True, slots=True)
class GuardedInterface:
    """An interface of a launch template with its security groups."""

    interface: Interface
    groups: frozenset[str]

    @property
    def has_efa(self) -> bool:
        """Whether EFA traffic goes over it."""
        return self.interface.type in EFA_TYPES

    @property
    def carries_ip(self) -> bool:
        """Whether IP traffic goes over it."""
        return self.interface.type != "efa-only"

    @property
    def place(self) -> str:
        """Which one it is."""
        return f"card {self.interface.card} device {self.interface.device}"


def group_place_findings(*, template_groups: int, interfaces: int) -> Iterator[Finding]:
    """Whether groups stand on a template beside interfaces, which they don't reach, whether those have some or not.

    Counts are enough, so it can be judged before ids are known.
    """
    if template_groups and interfaces:
        message = f"{template_groups} security groups on the launch template beside {interfaces} network interfaces"
        yield Finding(GROUPS_TWICE, message)


def cluster_group_findings(
    cluster_group: str, *, template_groups: Collection[str], interfaces: Sequence[GuardedInterface]
) -> Iterator[Finding]:
    """Where the cluster's group is missing although groups are named; groups beside interfaces are another rule's."""
    if template_groups and not interfaces and cluster_group not in template_groups:
        yield Finding(CLUSTER_GROUP, f"the launch template names {len(template_groups)} groups without {cluster_group}")
    is_named = any(item.groups for item in interfaces)
    lacking = [item.place for item in interfaces if is_named and item.carries_ip and cluster_group not in item.groups]
    if lacking:
        yield Finding(CLUSTER_GROUP, f"the interfaces {_few(lacking)} carry IP without {cluster_group}")


def efa_group_findings(efa_groups: Collection[str], interfaces: Sequence[GuardedInterface]) -> Iterator[Finding]:
    """EFA interfaces that carry none of the groups which let EFA traffic in and out."""
    lacking = [item.place for item in interfaces if item.has_efa and not item.groups & frozenset(efa_groups)]
    if lacking:
        message = f"{len(lacking)} EFA interfaces ({_few(lacking)}) carry no EFA security group"
        yield Finding(EFA_GROUP, message, evidence={"interfaces": len(lacking)})


def token_findings(http_tokens: str | None) -> Iterator[Finding]:
    """Whether the metadata service asks for a session token; ``None`` = nothing is said, which leaves it optional."""
    if http_tokens != "required":
        yield Finding(METADATA_TOKENS, f"http_tokens is {http_tokens or 'not set'}")


def hop_findings(hop_limit: int | None) -> Iterator[Finding]:
    """Whether containers reach the metadata service; ``None`` = nothing is said, and EKS takes 2."""
    if hop_limit != 1:
        said = "not set" if hop_limit is None else str(hop_limit)
        yield Finding(METADATA_HOPS, f"the hop limit of the metadata service is {said}")


def _few(places: Sequence[str]) -> str:
    rest = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return f"{', '.join(places[:3])}{rest}"


RULES: tuple[CloudRule, ...] = (GROUPS_TWICE, CLUSTER_GROUP, EFA_GROUP, METADATA_TOKENS, METADATA_HOPS)
