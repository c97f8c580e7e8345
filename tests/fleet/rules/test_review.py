"""The review as a whole: an unremarkable manifest passes, and every rule has its place in the table."""

import re

from fleet.rules import RULES
from fleet.violation import Enforcement


def test_an_unremarkable_pinned_manifest_has_no_violation(world):
    assert world.review(world.pinned()) == []


def test_rule_ids_are_unique_and_kebab_case(world):
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in ids)


def test_violations_come_in_the_order_of_the_table_and_worst_first(world):
    facts = world.facts(
        world.advisory(name="INVENTED-LOW", fixed="2.0.0", severity="low"),
        world.advisory(name="INVENTED-CRITICAL", fixed="2.0.0", severity="critical"),
        images=(),
    )
    violations = world.review(world.pinned(model={"revision": "main"}), facts)
    table = [rule.id for rule in RULES]
    places = [table.index(violation.rule) for violation in violations]
    assert places == sorted(places)
    affected = world.of("advisory-affected", violations)
    assert [violation.advisory for violation in affected] == ["INVENTED-CRITICAL", "INVENTED-LOW"]


def test_every_violation_says_what_would_be_right(world):
    manifest = world.pinned(
        engine={"version": "0.18.2", "flags": {"--api-key": "sk-invented-invented"}},
        features={"trust_remote_code": True},
        hardware={"gpus": 3},
        canary={"engine": {"name": "vllm"}},
    )
    violations = world.review(manifest, world.facts(world.advisory(fixed="2.0.0")))
    assert len({violation.rule for violation in violations}) >= 6
    assert all(violation.message and violation.remedy for violation in violations)
    assert all(violation.severity in Enforcement for violation in violations)


def test_facts_that_were_changed_are_judged_anew(world):
    manifest = world.pinned()
    before = world.facts(world.advisory(fixed="2.0.0"))
    assert world.refusing(world.review(manifest, before)) == {"advisory-affected"}
    after = before.model_copy(update={"data": before.data.model_copy(update={"advisories": world.data().advisories})})
    assert world.review(manifest, after) == []
    assert after.digest != before.digest
