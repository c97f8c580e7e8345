"""Policies on what an environment allows: regions, instance types, registries, money, tags."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, cast

from pulumi_policy import ResourceValidationArgs

from fleet.cloud import limits
from fleet.cloud.finding import Finding
from fleet.prices import bundled
from policies.adapter import Check, Props, Seen, Stack, StackCheck, TypesUnder, gathered
from policies.data import BUCKETS
from policies.groups import CLUSTER, NODE_GROUP, TEMPLATE, Group
from policies.instances import INSTANCE, MACHINES, SPOT
from policies.knowledge import Ground
from policies.reading import Unreadable, document, labels, number, parts, text, texts

PROVIDERS = ("pulumi:providers:aws", "pulumi:providers:aws-native")
TAGGED = (
    "aws:ec2/vpc:Vpc",
    CLUSTER,
    NODE_GROUP,
    TEMPLATE,
    "aws:ec2/natGateway:NatGateway",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:fsx/ontapFileSystem:OntapFileSystem",
    "aws:fsx/openZfsFileSystem:OpenZfsFileSystem",
    "aws:fsx/windowsFileSystem:WindowsFileSystem",
    "aws:efs/fileSystem:FileSystem",
    *BUCKETS,
    "aws:kms/key:Key",
    "aws:kms/replicaKey:ReplicaKey",
    "aws:ecr/repository:Repository",
    INSTANCE,
    SPOT,
    "aws:ec2/capacityReservation:CapacityReservation",
    "aws:ec2/capacityBlockReservation:CapacityBlockReservation",
    "aws:ec2/eip:Eip",
    "aws:ec2/vpcEndpoint:VpcEndpoint",
    "aws:ebs/volume:Volume",
    "aws:lb/loadBalancer:LoadBalancer",
    "aws:rds/cluster:Cluster",
    "aws:rds/instance:Instance",
)
"""What costs money by itself."""
TYPED = (
    TEMPLATE,
    *MACHINES,
    "aws:ec2/capacityReservation:CapacityReservation",
    "aws:ec2/capacityBlockReservation:CapacityBlockReservation",
    "aws:ec2/dedicatedHost:DedicatedHost",
)
"""With an ``instanceType``."""
NODE_POOLS = tuple(f"kubernetes:karpenter.sh/{version}:NodePool" for version in ("v1", "v1beta1"))
_TYPE_KEY, _FAMILY_KEYS = (
    "node.kubernetes.io/instance-type",
    ("karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-type-family"),
)
SETTINGS: Mapping[str, tuple[str, dict[str, Any]]] = {
    limits.REGION.id: ("regions", {"type": "array", "items": {"type": "string"}}),
    limits.INSTANCE_TYPE.id: ("instance_types", {"type": "array", "items": {"type": "string"}}),
    limits.REGISTRY.id: ("image_registries", {"type": "array", "items": {"type": "string"}}),
    limits.COST.id: ("max_usd_per_hour", {"type": "number", "exclusiveMinimum": 0}),
    limits.TAGS.id: ("required_tags", {"type": "array", "items": {"type": "string"}}),
}
"""Rule -> the key of the platform's policy that it reads, and the schema of that key."""


def _provider_region(seen: Seen) -> Iterator[Finding]:
    region = text(seen.props, "region")
    if region is not None:
        yield from limits.region_findings(region, seen.ground.platform.regions)


def _resource_region(seen: Seen) -> Iterator[Finding]:
    """What a region of its own (or the provider's, where the engine tells it) says."""
    region = text(seen.props, "region") or text(seen.provider, "region")
    if region is not None:
        yield from limits.region_findings(region, seen.ground.platform.regions)


def _own_region(seen: Seen) -> Iterator[Finding]:
    region = text(seen.props, "region")
    if region is not None and seen.type not in TAGGED:
        yield from limits.region_findings(region, seen.ground.platform.regions)


def _group_types(seen: Seen) -> Iterator[Finding]:
    for name in texts(seen.props, "instanceTypes"):
        yield from limits.instance_type_findings(name, seen.ground.platform.instance_types)


def _template_type(seen: Seen) -> Iterator[Finding]:
    name = text(seen.props, "instanceType")
    if name is not None:
        yield from limits.instance_type_findings(name, seen.ground.platform.instance_types)


def _pool_types(seen: Seen) -> Iterator[Finding]:
    """Types or families that a NodePool of Karpenter asks for; one that asks for neither takes any."""
    allowed = seen.ground.platform.instance_types
    asked = [item for item in parts(seen.props, "spec", "template", "spec", "requirements") if _is_in(item)]
    types = [item for item in asked if text(item, "key") == _TYPE_KEY]
    families = [item for item in asked if text(item, "key") in _FAMILY_KEYS]
    for name in (name for item in types for name in texts(item, "values")):
        yield from limits.instance_type_findings(name, allowed)
    if types:
        return
    for name in (name for item in families for name in texts(item, "values")):
        yield from limits.family_findings(name, allowed)
    if not families:
        yield from limits.any_type_findings(f"NodePool {seen.name}", allowed)


def _is_in(requirement: Props) -> bool:
    return text(requirement, "operator") == "In"


def _cost(stack: Stack, ground: Ground) -> Iterator[tuple[Seen | None, Finding | Exception]]:
    limit = ground.platform.max_usd_per_hour
    if limit is None:
        return
    prices: list[tuple[str, float]] = []
    yield from gathered(stack.of(NODE_GROUP), _prices, prices)
    for finding in limits.cost_findings(dict(prices), limit):
        yield None, finding


def _prices(seen: Seen) -> Iterator[tuple[str, float]]:
    """What a node group costs an hour at its largest, of the dearest type that it may take.

    Nothing where no price is known, which the program's outputs say.
    """
    group = Group(seen)
    names = (group.template_type,) if group.template_type else group.group_types
    way = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}.get(group.buying.capacity_type, "on-demand")
    nodes = number(group.props, "scalingConfig", "maxSize") or 0
    prices = [bundled().usd_per_hour(name, nodes=nodes, purchase=way) for name in names]
    known = [price for price in prices if price is not None]
    if known:
        yield seen.name, max(known)


def _tags(seen: Seen) -> Iterator[Finding]:
    yield from limits.tag_findings(tags_of(seen.props, seen.provider), seen.ground.platform.required_tags)


def tags_of(props: Props, provider: Props) -> dict[str, str]:
    """The tags that a resource gets: its provider's and its own."""
    default = document(provider, "defaultTags") or {}
    return {**labels(default, "tags"), **labels(props, "tags")}


async def with_tags(args: ResourceValidationArgs, *, ground: Ground) -> Mapping[str, Any]:
    """The properties with the missing tags whose value is known; nothing where there is none to add."""
    if args.resource_type not in TAGGED:
        return {}
    provider = args.provider.props if args.provider is not None else {}
    try:
        there = tags_of(args.props, provider)
    except Unreadable:  # the policy itself says so
        return {}
    known = {"environment": ground.environment}
    required = ground.platform.required_tags
    missing = {key: known[key] for key in required if key in known and not there.get(key, "").strip()}
    return _with_more(args.props, missing) if missing else {}


def _with_more(given: Props, missing: Mapping[str, str]) -> Props:
    """The properties with tags written into them: a copy would lose what the engine marks as secret."""
    props = cast("MutableMapping[str, Any]", given)  # the framework's are
    tags = props.get("tags")
    if tags is None:
        props["tags"] = dict(missing)
    else:
        for key, value in missing.items():
            tags[key] = value
    return props


CHECKS = (
    Check((limits.REGION,), PROVIDERS, _provider_region),
    Check((limits.REGION,), TypesUnder("aws:"), _own_region),  # each may have a region of its own
    Check((limits.REGION,), TAGGED, _resource_region),
    Check((limits.INSTANCE_TYPE,), (NODE_GROUP,), _group_types),
    Check((limits.INSTANCE_TYPE,), TYPED, _template_type),
    Check((limits.INSTANCE_TYPE,), NODE_POOLS, _pool_types),
    StackCheck((limits.COST,), _cost),
    Check((limits.TAGS,), TAGGED, _tags),
)
