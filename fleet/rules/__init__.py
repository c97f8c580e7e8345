"""The rules: the only place where a manifest is judged."""

from fleet.engine import EngineCatalogue
from fleet.facts import Facts
from fleet.manifest import AnyManifest, Manifest
from fleet.matching import Match
from fleet.rules import waivers
from fleet.rules.canary import canary_case, seen_from_manifest
from fleet.rules.case import Case, Rule, WaivedBy
from fleet.rules.pins import stale
from fleet.rules.registry import RULES, RULES_BY_ID
from fleet.violation import Violation

__all__ = ["RULES", "RULES_BY_ID", "Case", "Rule", "WaivedBy", "review", "stale", "suppressed"]


def review(
    manifest: AnyManifest, facts: Facts, catalogue: EngineCatalogue, *, written: Manifest | None = None
) -> list[Violation]:
    """Judge a manifest: every violation, in the order of the table and worst advisory first.

    ``written`` is the manifest that a pinned one was made from, for callers that have both: only then can a stale pin
    be seen.
    """
    case = Case(manifest, facts, catalogue, written=written, rules=RULES_BY_ID)
    found = waivers.apply(case, _violations(case))
    canary = canary_case(case)
    if canary is not None:
        found += [seen_from_manifest(item) for item in waivers.apply(canary, _violations(canary))]
    return found


def suppressed(manifest: AnyManifest, facts: Facts, catalogue: EngineCatalogue) -> tuple[Match, ...]:
    """Matches that are no violation because all their confirmed code paths are switched off, worst first."""
    return Case(manifest, facts, catalogue, rules=RULES_BY_ID).unreachable


def _violations(case: Case) -> list[Violation]:
    found: list[Violation] = []
    for rule in RULES:
        if rule.judges_canary or not case.is_canary:
            found += rule.check(case)
    return found
