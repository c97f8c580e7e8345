"""Rules about advisories that affect the version: malware, defects on exposed paths, and data that is missing."""

from collections.abc import Iterator

from fleet.matching import Match, Result
from fleet.rules import evidence
from fleet.rules.case import Case, Release
from fleet.rules.remedies import acceptable_version, beyond
from fleet.rules.triage import note, word_on
from fleet.violation import Enforcement, Violation
from fleet.waiver import Triage

MALWARE = "malware"
ADVISORY_AFFECTED = "advisory-affected"
ADVISORY_DATA = "advisory-data"
ADVISORY_AGE = "advisory-age"


def malware(case: Case) -> Iterator[Violation]:
    """The release is not known to be malicious; no path and no waiver excuses it."""
    for match in case.exposed:
        if match.advisory.is_malware and match.result is Result.AFFECTED:
            yield Violation(
                rule=MALWARE,
                severity=Enforcement.MANDATORY,
                pointer="/spec/engine/version",
                message=f"{case.release} is a malicious release ({match.advisory.id}): {match.reason}",
                remedy=f"never run it; {acceptable_version(case)}",
                evidence=evidence.of_match(case, match),
                advisory=match.advisory.id,
            )


def affected(case: Case) -> Iterator[Violation]:
    """No advisory affects the version on a path that is switched on."""
    for match in case.exposed:
        if match.result is Result.AFFECTED and not match.advisory.is_malware:
            yield _affected(case, match)


def _affected(case: Case, match: Match) -> Violation:
    known = word_on(case, match) if match.severity is None else None
    shown = evidence.of_match(case, match)
    reached = f"; reached through {shown['exposed_by']}" if "exposed_by" in shown else ""
    return Violation(
        rule=ADVISORY_AFFECTED,
        severity=_enforcement(case, match, known),
        pointer="/spec/engine/version",
        message=f"{case.release} is affected by {match.advisory.id} ({shown['severity']}): {match.reason}{reached}"
        + note(known),
        remedy=beyond(case, match),
        evidence=shown,
        advisory=match.advisory.id,
    )


def _enforcement(case: Case, match: Match, known: Triage | None) -> Enforcement:
    """By the rating; a missing one never refuses by itself, but the policy may ask for a triage entry."""
    policy = case.facts.policy
    if match.severity is None:
        refuses = policy.unrated_affected_needs_triage and known is None
    else:
        refuses = match.severity.rank >= policy.refuse_affected_from.rank
    return Enforcement.MANDATORY if refuses else Enforcement.ADVISORY


def data_complete(case: Case) -> Iterator[Violation]:
    """The data holds every record of the package; where it does not, nothing can be called clean."""
    if case.release is None:
        return
    why = case.facts.data.why_unknown(case.release.package)
    if why:
        yield _unknown(case, case.release, why)


def _unknown(case: Case, release: Release, why: str) -> Violation:
    return Violation(
        rule=ADVISORY_DATA,
        severity=Enforcement.ADVISORY,
        pointer="/spec/engine/name",
        message=f"unknown: {why}",
        remedy=f"load advisories that name {release.package}, or repair the record",
        evidence={"package": release.package, "data": case.facts.data.source},
    )


def data_fresh(case: Case) -> Iterator[Violation]:
    """The advisory data is not older than the policy allows."""
    limit = case.facts.policy.max_advisory_age_days
    age = case.facts.advisory_age_days()
    if limit is None or case.engine is None or (age is not None and age <= limit):
        return
    found = "has no date" if age is None else f"is {age} days old"
    yield Violation(
        rule=ADVISORY_AGE,
        severity=Enforcement.MANDATORY,
        pointer="/spec/engine",
        message=f"the advisory data {found}; environment '{case.facts.environment}' takes at most {limit} days",
        remedy="read the feeds again",
        evidence={
            "age_days": "unknown" if age is None else str(age),
            "limit_days": str(limit),
            "retrieved": str(case.facts.data.retrieved or "unknown"),
        },
    )
