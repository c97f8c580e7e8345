"""What an environment allows: regions, instance types, registries, money and tags. The lists stand in the policy."""

from collections.abc import Iterator, Mapping, Sequence

from fleet.cloud.finding import CloudRule, Finding, Grade

_POLICY = "the platform section of policies/policy.yaml"

REGION = CloudRule(
    "region-allowed",
    Grade.HIGH,
    "Everything stands in a region that the environment allows",
    f"take an allowed region, or add it to {_POLICY}",
    _POLICY,
)
INSTANCE_TYPE = CloudRule(
    "instance-type-allowed",
    Grade.HIGH,
    "Nodes are of an instance type that the environment allows",
    f"take an allowed type, or add it to {_POLICY}",
    _POLICY,
)
REGISTRY = CloudRule(
    "image-registry-allowed",
    Grade.HIGH,
    "Images come from a registry that the environment allows",
    f"push the image to an allowed registry, or add the registry to {_POLICY}",
    _POLICY,
)
COST = CloudRule(
    "cost-limit",
    Grade.HIGH,
    "All node groups at their largest cost no more than the environment may",
    f"lower the largest number of nodes, or raise the limit in {_POLICY}",
    _POLICY,
)
TAGS = CloudRule(
    "tags-present",
    Grade.LOW,
    "What costs money carries the tags by which it is accounted",
    "set them once in the provider's default_tags",
    _POLICY,
)


def region_findings(region: str, allowed: Sequence[str]) -> Iterator[Finding]:
    """Whether a region is among the allowed ones; an empty list allows all."""
    if allowed and region not in allowed:
        yield Finding(REGION, f"region {region}; allowed: {', '.join(allowed)}")


def instance_type_findings(instance_type: str, allowed: Sequence[str]) -> Iterator[Finding]:
    """Whether an instance type is allowed; ``p5.*`` allows a family, an empty list all."""
    if allowed and not any(_matches(instance_type, item) for item in allowed):
        yield Finding(INSTANCE_TYPE, f"instance type {instance_type}; allowed: {', '.join(allowed)}")


def family_findings(family: str, allowed: Sequence[str]) -> Iterator[Finding]:
    """Whether a whole family of instance types is allowed."""
    if allowed and not any(item.endswith("*") and _matches(f"{family}.", item) for item in allowed):
        yield Finding(INSTANCE_TYPE, f"all instance types of {family}; allowed: {', '.join(allowed)}")


def any_type_findings(what: str, allowed: Sequence[str]) -> Iterator[Finding]:
    """Something that takes whichever type is there."""
    if allowed:
        yield Finding(INSTANCE_TYPE, f"{what} names no instance types; allowed: {', '.join(allowed)}")


def registry_findings(image: str, allowed: Sequence[str]) -> Iterator[Finding]:
    """Whether an image comes from an allowed registry; ``*.example.org`` allows all below it, an empty list all."""
    registry = registry_of(image)
    if allowed and not any(_matches(registry, item) for item in allowed):
        yield Finding(REGISTRY, f"image {image} comes from {registry}; allowed: {', '.join(allowed)}")


def registry_of(image: str) -> str:
    """The registry of an image reference; one without a host is Docker Hub's."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"


def cost_findings(per_hour: Mapping[str, float], limit: float | None) -> Iterator[Finding]:
    """Whether node groups (name -> USD an hour at their largest) stay below a limit; ``None`` = no limit."""
    total = sum(per_hour.values())
    if limit is None or total <= limit:
        return
    dearest = max(per_hour, key=lambda name: per_hour[name])
    message = f"all node groups at their largest cost {total:.2f} USD an hour, the limit is {limit:.2f}"
    evidence = {"total": round(total, 2), "limit": limit}
    yield Finding(COST, f"{message}; the dearest is {dearest} with {per_hour[dearest]:.2f}", evidence=evidence)


def tag_findings(tags: Mapping[str, str], required: Sequence[str]) -> Iterator[Finding]:
    """Which of the required tags are missing or empty."""
    missing = [key for key in required if not tags.get(key, "").strip()]
    if missing:
        yield Finding(TAGS, f"no tag {', '.join(missing)}")


def _matches(text: str, allowed: str) -> bool:
    if allowed.startswith("*"):
        return text.endswith(allowed[1:])
    return text.startswith(allowed[:-1]) if allowed.endswith("*") else text == allowed


RULES: tuple[CloudRule, ...] = (REGION, INSTANCE_TYPE, REGISTRY, COST, TAGS)
