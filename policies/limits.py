"""Policies on what an environment allows: regions, instance types, registries, money, tags."""

from collections.abc import Iterator, Mapping
from typing import Any

from pulumi_policy import ResourceValidationArgs

from fleet.cloud import limits
from fleet.cloud.finding import Finding
from fleet.prices import bundled
from policies.adapter import Check, Props, Seen, Stack, StackCheck
from policies.groups import CLUSTER, NODE_GROUP, TEMPLATE, Group, groups_in
from policies.knowledge import Ground
from policies.reading import document, labels, number, text, texts

PROVIDER = "pulumi:providers:aws"
TAGGED = (
    "aws:ec2/vpc:Vpc",
    CLUSTER,
    NODE_GROUP,
    TEMPLATE,
    "aws:ec2/natGateway:NatGateway",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:s3/bucket:Bucket",
    "aws:kms/key:Key",
    "aws:ecr/repository:Repository",
)
"""What costs money by itself."""
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


def _group_types(seen: Seen) -> Iterator[Finding]:
    for name in texts(seen.props, "instanceTypes"):
        yield from limits.instance_type_findings(name, seen.ground.platform.instance_types)


def _template_type(seen: Seen) -> Iterator[Finding]:
    name = text(seen.props, "instanceType")
    if name is not None:
        yield from limits.instance_type_findings(name, seen.ground.platform.instance_types)


def _cost(stack: Stack, ground: Ground) -> Iterator[tuple[Seen | None, Finding]]:
    limit = ground.platform.max_usd_per_hour
    if limit is None:
        return
    prices = {group.seen.name: price for group in groups_in(stack) if (price := _price(group)) is not None}
    for finding in limits.cost_findings(prices, limit):
        yield None, finding


def _price(group: Group) -> float | None:
    """What a node group costs an hour at its largest; ``None`` = no price is known, which the program's outputs say."""
    name = group.template_type or next(iter(group.group_types), "")
    way = {"SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}.get(group.buying.capacity_type, "on-demand")
    nodes = number(group.props, "scalingConfig", "maxSize") or 0
    return bundled().usd_per_hour(name, nodes=nodes, purchase=way)


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
    there = tags_of(args.props, provider)
    known = {"environment": ground.environment}
    missing = {key: known[key] for key in ground.platform.required_tags if key in known and not there.get(key)}
    return {**args.props, "tags": {**labels(args.props, "tags"), **missing}} if missing else {}


CHECKS = (
    Check((limits.REGION,), (PROVIDER,), _provider_region),
    Check((limits.REGION,), TAGGED, _resource_region),
    Check((limits.INSTANCE_TYPE,), (NODE_GROUP,), _group_types),
    Check((limits.INSTANCE_TYPE,), (TEMPLATE,), _template_type),
    StackCheck((limits.COST,), _cost),
    Check((limits.TAGS,), TAGGED, _tags),
)
