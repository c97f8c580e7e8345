"""Waivers: they excuse exactly what they name, for one identity, until their end."""

from datetime import timedelta

import pytest

from fleet.rules import RULES, WaivedBy
from fleet.violation import Enforcement


def test_a_waiver_of_an_advisory_makes_its_violation_advisory_and_is_named(world):
    manifest = world.pinned()
    facts = world.facts(
        world.advisory(name="INVENTED-1", fixed="2.0.0"),
        world.advisory(name="INVENTED-2", fixed="2.0.0"),
        waivers=(world.waiver(manifest, advisory="INVENTED-1"),),
    )
    first, second = world.review(manifest, facts)
    assert (first.advisory, first.severity) == ("INVENTED-1", Enforcement.ADVISORY)
    assert "waived by 'w-1' of ada until 2030-01-08" in first.message
    assert first.evidence["waiver"] == "w-1"
    assert first.evidence["waiver_expires"] == "2030-01-08"
    assert (second.advisory, second.severity) == ("INVENTED-2", Enforcement.MANDATORY)


def test_a_waiver_under_an_alias_counts(world):
    manifest = world.pinned()
    record = world.record("INVENTED-1", fixed="2.0.0", aliases=("INVENTED-7", "INVENTED-8"))
    facts = world.facts(world.advisory(record), waivers=(world.waiver(manifest, advisory="INVENTED-8"),))
    assert world.refusing(world.review(manifest, facts)) == set()


def test_remote_code_needs_a_waiver_of_its_rule(world):
    manifest = world.pinned(features={"trust_remote_code": True})
    assert world.refusing(world.review(manifest)) == {"remote-code"}
    facts = world.facts(waivers=(world.waiver(manifest, rule="remote-code"),))
    (violation,) = world.review(manifest, facts)
    assert (violation.rule, violation.severity) == ("remote-code", Enforcement.ADVISORY)


def test_a_waiver_holds_for_its_identity_alone(world):
    manifest = world.pinned(features={"trust_remote_code": True})
    changed = world.pinned(features={"trust_remote_code": True}, batch={"max_model_len": 8192})
    facts = world.facts(waivers=(world.waiver(manifest, rule="remote-code"),))
    assert world.refusing(world.review(changed, facts)) == {"remote-code"}


def test_a_written_manifest_has_no_identity_and_so_no_waiver(world):
    waiver = world.waiver(world.pinned(features={"trust_remote_code": True}), rule="remote-code")
    written = world.written(features={"trust_remote_code": True})
    assert world.refusing(world.review(written, world.facts(waivers=(waiver,)))) == {"remote-code"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"expires_in": -1}, "it ended on 2029-12-31"),
        ({"expires_in": 91}, "it ends on 2030-04-02, 91 days from now; at most 90 are allowed"),
        ({"owner": " "}, "it has no owner"),
        ({"reason": ""}, "it has no reason"),
        ({"rule": "remote-cod"}, "there is no rule 'remote-cod'; did you mean 'remote-code'?"),
        ({"rule": None}, "it must name either an advisory or a rule"),
        ({"advisory": "INVENTED-OLD-vllm"}, "it must name either an advisory or a rule"),
        ({"rule": None, "advisory": "INVENTED-NOWHERE"}, "no advisory 'INVENTED-NOWHERE' for vllm"),
        ({"rule": "advisory-affected"}, "name the advisory"),
        ({"rule": "engine-denied"}, "can't be waived"),
    ],
)
def test_an_invalid_waiver_does_nothing_and_is_shown(world, changes, problem):
    manifest = world.pinned(features={"trust_remote_code": True})
    given = {"rule": "remote-code"} | changes
    days = given.pop("expires_in", 7)
    waiver = world.waiver(manifest, expires=world.today + timedelta(days=days), **given)
    violations = world.review(manifest, world.facts(waivers=(waiver,)))
    assert world.refusing(violations) == {"remote-code"}
    (shown,) = world.of("waiver-valid", violations)
    assert problem in shown.message
    assert shown.severity is Enforcement.ADVISORY
    assert "w-1" in shown.message


def test_a_waiver_holds_on_its_last_day(world):
    manifest = world.pinned(features={"trust_remote_code": True})
    facts = world.facts(waivers=(world.waiver(manifest, rule="remote-code", expires=world.today),))
    assert world.refusing(world.review(manifest, facts)) == set()


def test_a_broken_waiver_of_another_identity_is_not_this_manifests_business(world):
    waiver = world.waiver(world.pinned(features={"trust_remote_code": True}), rule="no-such-rule")
    assert world.review(world.pinned(), world.facts(waivers=(waiver,))) == []


def test_what_no_waiver_excuses_is_written_in_the_table():
    never = {rule.id for rule in RULES if rule.waived_by is WaivedBy.NOTHING}
    assert {"malware", "engine-denied", "four-pins", "flags-without-secrets", "hosted-key-by-reference"} <= never


def test_a_waiver_of_one_rule_excuses_no_other(world):
    manifest = world.pinned(features={"trust_remote_code": True}, engine={"image": world.image("2")})
    facts = world.facts(waivers=(world.waiver(manifest, rule="remote-code"),))
    assert world.refusing(world.review(manifest, facts)) == {"image-recorded"}


def test_what_does_not_refuse_needs_no_waiver_and_does_not_name_one(world):
    manifest = world.pinned()
    facts = world.facts(
        world.advisory(fixed="2.0.0", severity="low"), waivers=(world.waiver(manifest, advisory="INVENTED-1"),)
    )
    (violation,) = world.review(manifest, facts)
    assert "waiver" not in violation.evidence
