"""What security groups let through, however a program writes their rules down."""

from collections.abc import Iterator

from fleet.cloud.lustre_ports import EVERY_PROTOCOL, SELF, Opening
from policies.adapter import Props, Seen
from policies.reading import flag, has, number, parts, text, texts

GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS_RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS_RULE = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
OLD_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
DEFAULT_GROUP = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
RULES = (INGRESS_RULE, EGRESS_RULE, OLD_RULE)
_ALL_PORTS = (0, 65535)


def openings_of(group: Seen) -> tuple[Opening, ...]:
    """Everything that a group lets through: its own rules and those that stand beside it."""
    beside = [rule for type_ in RULES for rule in group.stack.pointing_at(group, type_, "securityGroupId")]
    return (*ranges_of(group), *_inline_selves(group), *(item for rule in beside for item in _of_rule(rule, group)))


def ranges_of(seen: Seen) -> Iterator[Opening]:
    """What a group or a rule by itself opens to ranges of addresses."""
    if seen.type in (GROUP, DEFAULT_GROUP):
        for key in ("ingress", "egress"):
            for item in parts(seen.props, key):
                yield from _ranges(item, is_ingress=key == "ingress")
    elif seen.type == OLD_RULE:
        yield from _ranges(seen.props, is_ingress=text(seen.props, "type") == "ingress")
    else:
        yield from _ranges(seen.props, is_ingress=seen.type == INGRESS_RULE)


def _inline_selves(group: Seen) -> Iterator[Opening]:
    for key in ("ingress", "egress"):
        for item in parts(group.props, key):
            if flag(item, "self"):
                yield _opening(SELF, item, is_ingress=key == "ingress")


def _of_rule(rule: Seen, group: Seen) -> Iterator[Opening]:
    is_old = rule.type == OLD_RULE
    is_ingress = text(rule.props, "type") == "ingress" if is_old else rule.type == INGRESS_RULE
    yield from ranges_of(rule)
    if is_old and flag(rule.props, "self"):
        yield _opening(SELF, rule.props, is_ingress=is_ingress)
    prop = "sourceSecurityGroupId" if is_old else "referencedSecurityGroupId"
    if has(rule.props, prop):
        yield _opening(_peer(rule, prop, group), rule.props, is_ingress=is_ingress)


def _peer(rule: Seen, prop: str, group: Seen) -> str:
    sources = rule.stack.sources(rule, prop)
    if group in sources:
        return SELF
    if sources:
        return sources[0].name
    written = text(rule.props, prop) or ""
    own = rule.stack.with_ids((written,), (GROUP,))
    return SELF if group in own else own[0].name if own else written


def _ranges(item: Props, *, is_ingress: bool) -> Iterator[Opening]:
    single = (text(item, key) for key in ("cidrIpv4", "cidrIpv6"))
    several = (cidr for key in ("cidrBlocks", "ipv6CidrBlocks") for cidr in texts(item, key))
    for cidr in (*single, *several):
        if cidr:
            yield _opening(cidr, item, is_ingress=is_ingress)


def _opening(peer: str, item: Props, *, is_ingress: bool) -> Opening:
    said = text(item, "ipProtocol") or text(item, "protocol") or EVERY_PROTOCOL
    protocol = said.strip().casefold().removesuffix(".0")  # numbers come as -1.0
    first, last = number(item, "fromPort"), number(item, "toPort")
    if protocol in (EVERY_PROTOCOL, "all"):
        return Opening(peer, EVERY_PROTOCOL, *_ALL_PORTS, is_ingress=is_ingress)
    return Opening(peer, protocol, first or 0, _ALL_PORTS[1] if last is None else last, is_ingress=is_ingress)
