"""Waivers: which of them hold, what they excuse, and the rule about those that do not."""

from collections.abc import Iterator, Sequence

from fleet.nearest import did_you_mean
from fleet.rules.case import Case, WaivedBy
from fleet.rules.exceptions import shared_problems
from fleet.violation import Enforcement, Violation
from fleet.waiver import Waiver

WAIVER_VALID = "waiver-valid"


def apply(case: Case, violations: Sequence[Violation]) -> list[Violation]:
    """The violations, with each mandatory one that a valid waiver names made advisory."""
    valid = [waiver for waiver in case.waivers if not any(_problems(case, waiver))]
    return [_as_excused(case, valid, violation) for violation in violations] if valid else list(violations)


def _as_excused(case: Case, valid: Sequence[Waiver], violation: Violation) -> Violation:
    waiver = next((item for item in valid if _excuses(case, item, violation)), None)
    return _waived(violation, waiver) if waiver else violation


def waiver_valid(case: Case) -> Iterator[Violation]:
    """Every waiver of this identity holds; one that does not is shown and does nothing."""
    for waiver in case.waivers:
        for problem in _problems(case, waiver):
            yield Violation(
                rule=WAIVER_VALID,
                severity=Enforcement.ADVISORY,
                pointer="",
                message=f"the waiver '{waiver.name}' does nothing: {problem}",
                remedy="give owner, reason, a known advisory or rule and an end within "
                f"{case.facts.policy.max_waiver_days} days, or remove it",
                evidence={"waiver": waiver.name, "owner": waiver.owner, "expires": str(waiver.expires)},
                advisory=waiver.advisory,
            )


def _problems(case: Case, waiver: Waiver) -> Iterator[str]:
    """Why a waiver does nothing; nothing when it holds."""
    yield from shared_problems(case.facts, waiver)
    if (waiver.advisory is None) == (waiver.rule is None):
        yield "it must name either an advisory or a rule"
    if waiver.rule is not None:
        yield from _rule_problems(case, waiver.rule)
    package = case.release.package if case.release else ""
    if waiver.advisory is not None and waiver.advisory not in case.facts.data.ids_for(package):
        yield f"the data has no advisory '{waiver.advisory}' for {package or 'this deployment'}"


def _rule_problems(case: Case, rule_id: str) -> Iterator[str]:
    rule = case.rules.get(rule_id)
    if rule is None:
        yield f"there is no rule '{rule_id}'{did_you_mean(rule_id, case.rules)}"
    elif rule.waived_by is WaivedBy.ADVISORY:
        yield f"the rule '{rule_id}' is waived for one advisory at a time; name the advisory"
    elif rule.waived_by is WaivedBy.NOTHING:
        yield f"the rule '{rule_id}' can't be waived"


def _excuses(case: Case, waiver: Waiver, violation: Violation) -> bool:
    if violation.severity is not Enforcement.MANDATORY:
        return False
    waived_by = case.rules[violation.rule].waived_by
    if waived_by is WaivedBy.RULE:
        return waiver.rule == violation.rule
    return waived_by is WaivedBy.ADVISORY and waiver.advisory in _ids(violation)


def _ids(violation: Violation) -> tuple[str, ...]:
    """The advisory of a violation under all its names."""
    aliases = violation.evidence.get("aliases", "").split(", ")
    return tuple(name for name in (violation.advisory, *aliases) if name)


def _waived(violation: Violation, waiver: Waiver) -> Violation:
    told = {"waiver": waiver.name, "waiver_owner": waiver.owner, "waiver_expires": str(waiver.expires)}
    return violation.model_copy(
        update={
            "severity": Enforcement.ADVISORY,
            "message": f"{violation.message}; waived by '{waiver.name}' of {waiver.owner} until {waiver.expires}: "
            f"{waiver.reason}",
            "evidence": violation.evidence | told,
        }
    )
