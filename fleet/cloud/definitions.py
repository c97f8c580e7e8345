"""Definitions of custom resources, and the objects that need them to be there first."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fleet.cloud.finding import CloudRule, Finding, Grade

CRD_APART = CloudRule(
    "crd-apart",
    Grade.MEDIUM,
    "Custom resources come after their definitions: in no chart with them, and by a dependency in one stack",
    "put the definitions into a release of their own and let the rest depend on it; objects by depends_on",
    "pulumi-kubernetes#3247, pulumi-kubernetes#1712, pulumi-kubernetes#1735",
)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is applied as one: a chart, or a folder of objects. Kinds are written ``group/Kind``."""

    name: str
    defines: frozenset[str]
    uses: frozenset[str]


def bundle_findings(bundle: Bundle) -> Iterator[Finding]:
    """Kinds that a bundle defines and uses at once."""
    both = sorted(bundle.defines & bundle.uses)
    if both:
        yield Finding(CRD_APART, f"{bundle.name} defines {', '.join(both)} and has objects of it")


def order_findings(kind: str, *, definition: str, early: Collection[str]) -> Iterator[Finding]:
    """Objects of a kind that wait for nothing; ``early`` = those by name that may be made before the definition."""
    if early:
        message = f"{', '.join(sorted(early))} may be made before {definition} defines {kind}"
        yield Finding(CRD_APART, message, "let it depend on the definition (depends_on)")


RULES: tuple[CloudRule, ...] = (CRD_APART,)
