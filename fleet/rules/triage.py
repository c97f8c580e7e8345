"""What people found out about an advisory whose data does not decide: which entry counts, and the rule about them."""

from collections.abc import Iterator

from fleet.matching import Match
from fleet.rules.case import Case
from fleet.violation import Enforcement, Violation
from fleet.waiver import Triage

TRIAGE_VALID = "triage-valid"


def word_on(case: Case, match: Match) -> Triage | None:
    """The valid entry for a match and the manifest's version: the first by name."""
    words = case.triaged
    if not words:
        return None
    found = [words[name] for name in match.advisory.all_ids if name in words]
    return min(found, key=lambda entry: entry.name, default=None)


def note(entry: Triage | None) -> str:
    """What the entry says, to stand behind a message."""
    return f"; triaged {entry.status.value} by {entry.owner} until {entry.expires}: {entry.reason}" if entry else ""


def triage_valid(case: Case) -> Iterator[Violation]:
    """Every triage entry for this engine version holds; one that does not is shown and does nothing."""
    for entry, problems in case.triage:
        for problem in problems:
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
