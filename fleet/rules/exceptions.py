"""Waivers and triage entries as exceptions: they need an owner, a reason, an end that is near, and a subject."""

from collections.abc import Iterator

from fleet.facts import Facts
from fleet.waiver import Triage, Waiver


def shared_problems(facts: Facts, entry: Waiver | Triage) -> Iterator[str]:
    """What keeps an exception from holding, apart from what it is about."""
    if not entry.owner.strip():
        yield "it has no owner"
    if not entry.reason.strip():
        yield "it has no reason"
    if not entry.holds_on(facts.today):
        yield f"it ended on {entry.expires}"
    days, most = (entry.expires - facts.today).days, facts.policy.max_waiver_days
    if days > most:
        yield f"it ends on {entry.expires}, {days} days from now; at most {most} are allowed"


def judged_triage(facts: Facts, package: str) -> tuple[tuple[Triage, tuple[str, ...]], ...]:
    """Every triage entry of a package, by name, with what keeps it from holding."""
    entries = facts.triage_for(package)
    return facts.remember(
        ("judged triage", package), lambda: tuple((entry, tuple(_triage_problems(facts, entry))) for entry in entries)
    )


def _triage_problems(facts: Facts, entry: Triage) -> Iterator[str]:
    yield from shared_problems(facts, entry)
    if not entry.reference.strip():
        yield "it has no reference"
    if entry.advisory not in facts.data.ids_for(entry.package):
        yield f"the data has no advisory '{entry.advisory}' for {entry.package}"
