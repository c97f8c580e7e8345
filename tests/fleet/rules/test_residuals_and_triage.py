"""Residuals: shown, silenced by a valid word of a person, refused where policy wants that word."""

from datetime import timedelta

import pytest

from fleet.policy import Policy
from fleet.severity import Severity
from fleet.violation import Enforcement
from fleet.waiver import TriageStatus

PROD = Policy(residuals_need_triage_from=Severity.HIGH)


@pytest.mark.parametrize(
    ("bounds", "result"),
    [({"last_affected": "0.19.0"}, "no_fix_known"), ({"fixed": "abc"}, "unknown"), ({}, "unknown")],
)
def test_a_residual_is_told_where_the_policy_asks_for_no_triage(world, bounds, result):
    (violation,) = world.review(world.pinned(), world.facts(world.advisory(**bounds)))
    assert (violation.rule, violation.severity) == ("advisory-residual", Enforcement.ADVISORY)
    assert violation.evidence["result"] == result


@pytest.mark.parametrize(
    ("severity", "refuses"), [("critical", True), ("high", True), ("medium", False), ("low", False), (None, False)]
)
def test_a_residual_that_a_source_rates_high_needs_triage_in_prod(world, severity, refuses):
    facts = world.facts(world.advisory(last_affected="0.19.0", severity=severity), policy=PROD)
    violations = world.review(world.pinned(), facts)
    assert len(violations) == 1
    assert bool(world.refusing(violations)) is refuses


def test_any_source_that_rates_it_high_is_enough(world):
    advisory = world.advisory(
        world.record("INVENTED-1", last_affected="0.19.0", severity="low"),
        world.record("INVENTED-2", last_affected="0.19.0", severity="high", aliases=("INVENTED-1",)),
    )
    assert world.refusing(world.review(world.pinned(), world.facts(advisory, policy=PROD))) == {"advisory-residual"}


def test_a_residual_on_a_path_that_is_off_is_nothing(world):
    facts = world.facts(world.advisory(last_affected="0.19.0", paths=("lora",)), policy=PROD)
    assert world.review(world.pinned(), facts) == []


@pytest.mark.parametrize("status", [TriageStatus.FIXED, TriageStatus.NOT_AFFECTED])
def test_fixed_and_not_affected_silence_a_residual(world, status):
    facts = world.facts(world.advisory(last_affected="0.19.0"), policy=PROD, triage=(world.triage(status=status),))
    assert world.review(world.pinned(), facts) == []


def test_accepted_leaves_a_note_with_owner_and_end(world):
    facts = world.facts(
        world.advisory(last_affected="0.19.0"), policy=PROD, triage=(world.triage(status=TriageStatus.ACCEPTED),)
    )
    (violation,) = world.review(world.pinned(), facts)
    assert violation.severity is Enforcement.ADVISORY
    assert "triaged accepted by ada until 2030-01-08" in violation.message
    assert violation.evidence["triage"] == "t-1"


def test_triage_under_an_alias_counts(world):
    record = world.record("INVENTED-1", last_affected="0.19.0", aliases=("INVENTED-2",))
    facts = world.facts(world.advisory(record), policy=PROD, triage=(world.triage("INVENTED-2"),))
    assert world.review(world.pinned(), facts) == []


@pytest.mark.parametrize(
    "changes", [{"package": "sglang"}, {"versions": ("0.20.0",)}, {"advisory": "INVENTED-OLD-vllm"}]
)
def test_triage_of_something_else_does_not_count(world, changes):
    facts = world.facts(world.advisory(last_affected="0.19.0"), policy=PROD, triage=(world.triage(**changes),))
    assert world.refusing(world.review(world.pinned(), facts)) == {"advisory-residual"}


def test_triage_without_versions_holds_for_every_version(world):
    facts = world.facts(world.advisory(last_affected="0.19.0"), policy=PROD, triage=(world.triage(versions=()),))
    assert world.review(world.pinned(), facts) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"expires_in": -1}, "it ended on 2029-12-31"),
        ({"expires_in": 91}, "at most 90 are allowed"),
        ({"owner": ""}, "it has no owner"),
        ({"reason": "  "}, "it has no reason"),
        ({"reference": ""}, "it has no reference"),
        ({"advisory": "INVENTED-NOWHERE"}, "no advisory 'INVENTED-NOWHERE'"),
    ],
)
def test_an_invalid_triage_entry_does_nothing_and_is_shown(world, changes, problem):
    days = changes.pop("expires_in", 7)
    entry = world.triage(expires=world.today + timedelta(days=days), **changes)
    facts = world.facts(world.advisory(last_affected="0.19.0"), policy=PROD, triage=(entry,))
    violations = world.review(world.pinned(), facts)
    assert world.refusing(violations) == {"advisory-residual"}
    (shown,) = world.of("triage-valid", violations)
    assert problem in shown.message
    assert shown.severity is Enforcement.ADVISORY


def test_a_triage_entry_holds_on_its_last_day(world):
    entry = world.triage(expires=world.today)
    facts = world.facts(world.advisory(last_affected="0.19.0"), policy=PROD, triage=(entry,))
    assert world.review(world.pinned(), facts) == []
