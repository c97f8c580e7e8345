"""Policies on the network: subnets, the cluster's endpoint, security groups of nodes and of EFA."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from fleet.cloud import network, node_access
from fleet.cloud.finding import Finding
from fleet.cloud.lustre_ports import EVERY_PROTOCOL, SELF
from fleet.cloud.network import Endpoint, NodeDemand
from fleet.cloud.node_access import GuardedInterface
from policies.adapter import Check, Seen, Stack
from policies.groups import CLUSTER, NODE_GROUP, SUBNET, TEMPLATE, Group, addresses_of, interfaces_of
from policies.helm import is_off
from policies.reading import at, document, flag, has, number, parts, text, texts
from policies.routes import leads_outside
from policies.security_groups import DEFAULT_GROUP, GROUP, RULES, openings_of, ranges_of

ADD_ON = "aws:eks/addon:Addon"
PREFIX_LIST = "aws:ec2/managedPrefixList:ManagedPrefixList"
PREFIX_LIST_ENTRY = "aws:ec2/managedPrefixListEntry:ManagedPrefixListEntry"
_IPV4_BITS = 32


def _subnet_size(seen: Seen) -> Iterator[Finding]:
    users = [Group(item) for item in seen.stack.pointing_at(seen, NODE_GROUP, "subnetIds")]
    found = _ipv4(seen) if users else None
    if found is not None:
        demands = [_demand(group) for group in users]
        delegates = _delegates_prefixes(seen.stack)
        yield from network.subnet_findings(found, demands, prefix_delegation=delegates)


def _ipv4(subnet: Seen) -> IPv4Network | None:
    """The range of a subnet; of one whose range an IPAM pool gives its size counts."""
    length = number(subnet.props, "ipv4NetmaskLength")
    if length is not None and 0 <= length <= _IPV4_BITS:
        return IPv4Network((0, length))
    return addresses_of(subnet)


def _demand(group: Group) -> NodeDemand:
    """The share of a node group that stands in one of its zones when it is full."""
    nodes = number(group.props, "scalingConfig", "maxSize") or 0
    zones = max(len(group.zones), 1)
    return NodeDemand(group.seen.name, -(-nodes // zones), network.address_interfaces(group.interfaces))


def _delegates_prefixes(stack: Stack) -> bool:
    for add_on in stack.of(ADD_ON):
        if text(add_on.props, "addonName") == "vpc-cni":
            values = document(add_on.props, "configurationValues") or {}
            return flag(values, "env", "ENABLE_PREFIX_DELEGATION")
    return False


def _public_nodes(seen: Seen) -> Iterator[Finding]:
    for subnet in seen.links("subnetIds", SUBNET):
        maps = flag(subnet.props, "mapPublicIpOnLaunch")
        leads = leads_outside(subnet)
        yield from network.node_subnet_findings(subnet.name, maps_public_ip=maps, leads_outside=leads)
    yield from network.node_address_findings(Group(seen).interfaces)


def _endpoint(seen: Seen) -> Iterator[Finding]:
    config = at(seen.props, "vpcConfig") or {}
    is_public = not is_off(config, "endpointPublicAccess")
    endpoint = Endpoint(
        is_public=is_public,
        is_private=flag(config, "endpointPrivateAccess"),
        public_cidrs=texts(config, "publicAccessCidrs") if is_public else (),
    )
    yield from network.endpoint_findings(endpoint)


def _world(seen: Seen) -> Iterator[Finding]:
    yield from network.ingress_findings(seen.name, tuple(ranges_of(seen)))


def _prefix_list(seen: Seen) -> Iterator[Finding]:
    entries = parts(seen.props, "entries") if seen.type == PREFIX_LIST else (seen.props,)
    yield from network.prefix_list_findings(seen.name, [text(item, "cidr") or "" for item in entries])


def _efa_self(seen: Seen) -> Iterator[Finding]:
    """Of the groups of a template with EFA, those that open all traffic to themselves in one direction at least."""
    if not _has_efa(seen):
        return
    for group in _efa_groups(seen):
        yield from network.efa_self_findings(group.name, openings_of(group))


def _has_efa(template: Seen) -> bool:
    users = template.stack.pointing_at(template, NODE_GROUP, "launchTemplate")
    return any(Group(user).has_efa for user in users)


def _efa_groups(template: Seen) -> tuple[Seen, ...]:
    groups = (item for item in template.stack.sources(template, "networkInterfaces") if item.type == GROUP)
    return tuple(group for group in groups if _opens_to_itself(group))


def _opens_to_itself(group: Seen) -> bool:
    return any(item.peer == SELF and item.protocol == EVERY_PROTOCOL for item in openings_of(group))


def _efa_group(seen: Seen) -> Iterator[Finding]:
    if not _has_efa(seen):
        return
    groups = _efa_groups(seen)
    if not groups:  # no id is needed to see it
        bare = [GuardedInterface(item, frozenset()) for item in interfaces_of(seen.props)]
        yield from node_access.efa_group_findings((), bare)
        return
    ids = [text(group.props, "id") or "" for group in groups]
    yield from node_access.efa_group_findings(ids, _guarded(seen))


def _cluster_group(seen: Seen) -> Iterator[Finding]:
    users = [Group(item) for item in seen.stack.pointing_at(seen, NODE_GROUP, "launchTemplate")]
    for cluster in {group.cluster.urn: group.cluster for group in users if group.cluster}.values():
        yield from _cluster_group_on(seen, cluster)


def _cluster_group_on(template: Seen, cluster: Seen) -> Iterator[Finding]:
    on_interfaces = [item for item in parts(template.props, "networkInterfaces") if has(item, "securityGroups")]
    on_template = has(template.props, "vpcSecurityGroupIds")
    if not on_template and not on_interfaces:
        return
    has_interfaces = bool(parts(template.props, "networkInterfaces"))
    if has_interfaces and not on_interfaces:  # those of the template don't reach them: another rule speaks
        return
    prop = "networkInterfaces" if has_interfaces else "vpcSecurityGroupIds"
    if not template.comes_from(prop, CLUSTER) and template.stack.sources(template, prop):
        guarded = [GuardedInterface(item, frozenset({"others"})) for item in interfaces_of(template.props)]
        said = ("others",) if on_template else ()
        wanted = f"that of {cluster.name}"
        yield from node_access.cluster_group_findings(wanted, template_groups=said, interfaces=guarded)
        return
    wanted = text(cluster.props, "vpcConfig", "clusterSecurityGroupId") or ""
    named = texts(template.props, "vpcSecurityGroupIds")
    yield from node_access.cluster_group_findings(wanted, template_groups=named, interfaces=_guarded(template))


def _guarded(template: Seen) -> list[GuardedInterface]:
    groups = (texts(item, "securityGroups") for item in parts(template.props, "networkInterfaces"))
    pairs = zip(interfaces_of(template.props), groups, strict=True)
    return [GuardedInterface(item, frozenset(ids)) for item, ids in pairs]


CHECKS = (
    Check((network.SUBNET_SIZE,), (SUBNET,), _subnet_size, relates=True),
    Check((network.PUBLIC_NODES,), (NODE_GROUP,), _public_nodes, relates=True),
    Check((network.ENDPOINT_OPEN, network.ENDPOINT_PRIVATE), (CLUSTER,), _endpoint),
    Check((network.WORLD_INGRESS,), (GROUP, DEFAULT_GROUP, *RULES), _world),
    Check((network.WORLD_INGRESS,), (PREFIX_LIST, PREFIX_LIST_ENTRY), _prefix_list),
    Check((network.EFA_SELF,), (TEMPLATE,), _efa_self, relates=True),
    Check((node_access.EFA_GROUP,), (TEMPLATE,), _efa_group, relates=True),
    Check((node_access.CLUSTER_GROUP,), (TEMPLATE,), _cluster_group, relates=True),
)
