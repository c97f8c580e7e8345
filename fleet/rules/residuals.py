"""The rule about residuals: matches whose data does not decide, and what people found out about them."""

from collections.abc import Iterator

from fleet.matching import Match, Result
from fleet.rules import evidence
from fleet.rules.case import Case
from fleet.rules.triage import note, word_on
from fleet.violation import Enforcement, Violation
from fleet.waiver import Triage, TriageStatus

ADVISORY_RESIDUAL = "advisory-residual"


def residuals(case: Case) -> Iterator[Violation]:
    """Nothing stays undecided on an exposed path, or a person has said what it means.

    A triage entry ``fixed`` or ``not_affected`` silences a residual; ``accepted`` leaves a note.
    """
    for match in case.exposed:
        if match.result is Result.AFFECTED:
            continue
        known = word_on(case, match)
        if known is None or known.status is TriageStatus.ACCEPTED:
            yield _residual(case, match, known)


def _residual(case: Case, match: Match, known: Triage | None) -> Violation:
    advisory_id = match.advisory.id
    what = "no fix is known for" if match.result is Result.NO_FIX_KNOWN else "it is unknown whether it has"
    shown = evidence.of_match(case, match)
    return Violation(
        rule=ADVISORY_RESIDUAL,
        severity=Enforcement.MANDATORY if known is None and _needs_triage(case, match) else Enforcement.ADVISORY,
        pointer="/spec/engine/version",
        message=f"{case.release}: {what} {advisory_id} ({shown['severity']}): {match.reason}" + note(known),
        remedy=f"find out and record it: a triage entry for {match.package} and {advisory_id} "
        "(fixed, not_affected or accepted) with owner, reason, reference and end",
        evidence=shown | ({"triage": known.name} if known else {}),
        advisory=advisory_id,
    )


def _needs_triage(case: Case, match: Match) -> bool:
    """Only what a source states counts: a missing rating never refuses by itself."""
    level = case.facts.policy.residuals_need_triage_from
    return level is not None and match.severity is not None and match.severity.rank >= level.rank
