"""What waivers and triage entries have in common: they need an owner, a reason and an end that is near."""

from collections.abc import Iterator

from fleet.rules.case import Case
from fleet.waiver import Triage, Waiver


def common_problems(case: Case, entry: Waiver | Triage) -> Iterator[str]:
    """What keeps an exception from holding, apart from what it is about."""
    if not entry.owner.strip():
        yield "it has no owner"
    if not entry.reason.strip():
        yield "it has no reason"
    if not entry.holds_on(case.facts.today):
        yield f"it ended on {entry.expires}"
    days, most = (entry.expires - case.facts.today).days, case.facts.policy.max_waiver_days
    if days > most:
        yield f"it ends on {entry.expires}, {days} days from now; at most {most} are allowed"


def is_known_advisory(case: Case, advisory_id: str, package: str) -> bool:
    """Whether the data has an advisory of this id or alias for a package."""
    return any(
        advisory_id in record.aliases or advisory_id == record.id
        for advisory in case.facts.data.advisories_for(package)
        for record in advisory.records
    )
