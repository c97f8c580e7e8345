"""What people found out about an advisory whose data does not decide: which entry holds, and the rule about them."""

from collections.abc import Iterator
from itertools import chain

from fleet.advisory import normalised_package
from fleet.matching import Match
from fleet.rules.case import Case, Release
from fleet.rules.exceptions import common_problems, is_known_advisory
from fleet.versions import parse_version
from fleet.violation import Enforcement, Violation
from fleet.waiver import Triage

TRIAGE_VALID = "triage-valid"


def word_on(case: Case, match: Match) -> Triage | None:
    """The valid entry for a match and the manifest's version: the first by name."""
    ids = match.advisory.all_ids
    found = (entry for entry in _entries(case) if entry.advisory in ids and not problems(case, entry))
    return min(found, key=lambda entry: entry.name, default=None)


def note(entry: Triage | None) -> str:
    """What the entry says, to stand behind a message."""
    return f"; triaged {entry.status.value} by {entry.owner} until {entry.expires}: {entry.reason}" if entry else ""


def problems(case: Case, entry: Triage) -> tuple[str, ...]:
    """Why an entry does nothing; empty when it holds."""
    own = () if entry.reference.strip() else ("it has no reference",)
    unknown = (
        ()
        if is_known_advisory(case, entry.advisory, entry.package)
        else (f"the data has no advisory '{entry.advisory}' for {entry.package}",)
    )
    return tuple(chain(common_problems(case, entry), own, unknown))


def triage_valid(case: Case) -> Iterator[Violation]:
    """Every triage entry for this engine version holds; one that does not is shown and does nothing."""
    for entry in _entries(case):
        for problem in problems(case, entry):
            yield Violation(
                rule=TRIAGE_VALID,
                severity=Enforcement.ADVISORY,
                pointer="/spec/engine/version",
                message=f"the triage entry '{entry.name}' does nothing: {problem}",
                remedy="give owner, reason, reference, a known advisory and an end within "
                f"{case.facts.policy.max_waiver_days} days, or remove it",
                evidence={"triage": entry.name, "owner": entry.owner, "expires": str(entry.expires)},
                advisory=entry.advisory,
            )


def _entries(case: Case) -> Iterator[Triage]:
    release = case.release
    if release is None:
        return
    for entry in case.facts.triage:
        if normalised_package(entry.package) == release.package and _covers(entry, release):
            yield entry


def _covers(entry: Triage, release: Release) -> bool:
    if not entry.versions or release.raw in entry.versions:
        return True
    return release.version is not None and release.version in map(parse_version, entry.versions)
