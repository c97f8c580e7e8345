"""Manifests in a program: what the rules of the fleet say about them, as findings beside those of the cloud."""

from collections.abc import Iterator

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import PinnedManifest
from fleet.rules import review
from fleet.rules.advisories import ADVISORY_AGE, MALWARE
from fleet.violation import Enforcement, Violation

_RULES = "docs/reference/rules.md"

UNREADABLE = CloudRule(
    "manifest-unreadable",
    Grade.HIGH,
    "A ConfigMap that is labelled as a manifest holds a pinned one",
    "put what 'enginehouse pin --write' wrote under the key manifest.yaml",
    "own judgement: the control plane adopts what it can read",
)
REFUSED = CloudRule(
    "manifest-refused",
    Grade.CRITICAL,
    "No rule of the fleet refuses a manifest",
    "change the manifest and pin it again",
    _RULES,
)
ADVISED = CloudRule(
    "manifest-advised",
    Grade.LOW,
    "A manifest gives the rules of the fleet nothing to tell",
    "look at it; nothing is refused",
    _RULES,
)


def manifest_findings(
    manifest: PinnedManifest, facts: Facts, catalogue: EngineCatalogue, *, is_running: bool
) -> Iterator[Finding]:
    """What the rules say; what an advisory says about an identity that runs by a reviewed decision may be a warning."""
    may_stay = is_running and facts.policy.existing_identities == "warn"
    for item in review(manifest, facts, catalogue):
        refuses = item.severity is Enforcement.MANDATORY and not (may_stay and is_news(item))
        message = f"{manifest.name} ({manifest.identity}): {item.rule} at {item.pointer or '/'}: {item.message}"
        yield Finding(REFUSED if refuses else ADVISED, message, item.remedy, dict(item.evidence))


def is_news(violation: Violation) -> bool:
    """Whether advisories say it, and not the manifest; malware is never let be."""
    return violation.rule != MALWARE and (violation.advisory is not None or violation.rule == ADVISORY_AGE)


RULES: tuple[CloudRule, ...] = (UNREADABLE, REFUSED, ADVISED)
