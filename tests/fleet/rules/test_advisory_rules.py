"""Advisories against a manifest: what refuses, what is told, and what the evidence shows."""

from datetime import date, timedelta

import pytest

from fleet.facts import Quarantined
from fleet.policy import Policy
from fleet.rules import suppressed
from fleet.severity import Severity
from fleet.violation import Enforcement

UNRATED_NEEDS_TRIAGE = Policy(unrated_affected_needs_triage=True)


@pytest.mark.parametrize(
    ("severity", "refuses"),
    [("critical", True), ("high", True), ("medium", True), ("low", False), ("none", False), (None, False)],
)
def test_a_rating_from_the_policys_level_on_refuses(world, severity, refuses):
    (violation,) = world.review(world.pinned(), world.facts(world.advisory(fixed="2.0.0", severity=severity)))
    assert violation.rule == "advisory-affected"
    assert (violation.severity is Enforcement.MANDATORY) is refuses
    assert violation.advisory == "INVENTED-1"


def test_the_level_is_the_policys(world):
    advisory = world.advisory(fixed="2.0.0", severity="high")
    facts = world.facts(advisory, policy=Policy(refuse_affected_from=Severity.CRITICAL))
    assert world.refusing(world.review(world.pinned(), facts)) == set()


def test_a_fixed_version_has_no_violation(world):
    assert world.review(world.pinned(), world.facts(world.advisory(fixed="1.0.0"))) == []


def test_an_unrated_record_needs_triage_where_the_policy_says_so(world):
    advisory = world.advisory(fixed="2.0.0", severity=None)
    refused = world.review(world.pinned(), world.facts(advisory, policy=UNRATED_NEEDS_TRIAGE))
    triaged = world.review(world.pinned(), world.facts(advisory, policy=UNRATED_NEEDS_TRIAGE, triage=(world.triage(),)))
    assert world.refusing(refused) == {"advisory-affected"}
    assert world.refusing(triaged) == set()
    assert "triaged not_affected by ada until 2030-01-08" in triaged[0].message


def test_triage_says_nothing_about_a_rated_record(world):
    facts = world.facts(world.advisory(fixed="2.0.0"), triage=(world.triage(),))
    assert world.refusing(world.review(world.pinned(), facts)) == {"advisory-affected"}


def test_a_record_whose_paths_are_all_switched_off_is_suppressed_and_can_be_shown(world):
    facts = world.facts(world.advisory(fixed="2.0.0", paths=("multimodal", "lora")))
    assert world.review(world.pinned(), facts) == []
    (shown,) = suppressed(world.pinned(), facts, world.catalogue())
    assert shown.advisory.id == "INVENTED-1"


@pytest.mark.parametrize("paths", [(), ("multimodal", "api"), ("model-load",)])
def test_a_record_with_no_label_or_one_reachable_path_counts(world, paths):
    facts = world.facts(world.advisory(fixed="2.0.0", paths=paths))
    assert world.refusing(world.review(world.pinned(), facts)) == {"advisory-affected"}
    assert suppressed(world.pinned(), facts, world.catalogue()) == ()


def test_an_unconfirmed_label_suppresses_nothing(world):
    facts = world.facts(world.advisory(fixed="2.0.0", paths=("lora",), confirmed=False))
    assert world.refusing(world.review(world.pinned(), facts)) == {"advisory-affected"}


def test_the_evidence_says_what_switched_the_path_on(world):
    manifest = world.pinned(features={"modalities": ["text", "image"]})
    facts = world.facts(world.advisory(fixed="2.0.0", severity="critical", paths=("multimodal",)))
    (violation,) = world.review(manifest, facts)
    assert violation.evidence == {
        "id": "INVENTED-1",
        "severity": "critical",
        "result": "affected",
        "reason": "in every version before 2.0.0",
        "fixed": "2.0.0",
        "paths": "multimodal",
        "exposed_by": "multimodal: features.modalities",
        "door_closes": "multimodal",
        "reference": "https://advisories.invalid/INVENTED-1",
    }
    assert "reached through multimodal: features.modalities" in violation.message


@pytest.mark.parametrize(
    ("paths", "closes"),
    [
        (("multimodal",), "multimodal"),
        (("multimodal", "lora"), "multimodal"),  # no adapters are served
        (("multimodal", "api"), None),
        (("api",), None),
        ((), None),
    ],
)
def test_the_evidence_says_what_the_gateway_has_to_close_where_that_is_enough(world, paths, closes):
    manifest = world.pinned(features={"modalities": ["text", "image"]})
    (violation,) = world.review(manifest, world.facts(world.advisory(fixed="2.0.0", paths=paths)))
    assert violation.evidence.get("door_closes") == closes


def test_no_door_keeps_a_malicious_release_out(world):
    manifest = world.pinned(features={"modalities": ["text", "image"]})
    record = world.record("MAL-1", versions=("1.0.0",), is_malware=True)
    found = world.review(manifest, world.facts(world.advisory(record, paths=("multimodal",))))
    assert world.refusing(found) == {"malware"}
    assert not any("door_closes" in item.evidence for item in found)


def test_the_remedy_names_the_fix_and_the_newest_acceptable_version(world):
    facts = world.facts(world.advisory(fixed="0.19.0"))
    (violation,) = world.review(world.pinned(engine={"version": "0.18.1"}), facts)
    assert "fixed in 0.19.0" in violation.remedy
    assert "vllm 1.0.0" in violation.remedy


def test_the_remedy_says_when_no_version_is_acceptable(world):
    (violation,) = world.review(world.pinned(), world.facts(world.advisory(fixed="2.0.0")))
    assert "no published version of vllm is acceptable" in violation.remedy


def test_sources_that_disagree_are_both_shown_and_the_stricter_counts(world):
    advisory = world.advisory(
        world.record("INVENTED-1", fixed="0.18.0", aliases=("INVENTED-2",)),
        world.record("INVENTED-2", fixed="2.0.0", incomplete_fix_of=("INVENTED-0",)),
    )
    (violation,) = world.review(world.pinned(), world.facts(advisory))
    assert violation.severity is Enforcement.MANDATORY
    assert "INVENTED-1: not_affected" in violation.evidence["sources"]
    assert "INVENTED-2: affected" in violation.evidence["sources"]
    assert violation.evidence["incomplete_fix_of"] == "INVENTED-0"


def test_a_record_that_one_source_withdrew_is_kept_and_flagged(world):
    gone = world.record("INVENTED-1", fixed="2.0.0", withdrawn="2029-01-01T00:00:00Z")
    kept = world.record("INVENTED-2", fixed="2.0.0", aliases=("INVENTED-1",))
    (violation,) = world.review(world.pinned(), world.facts(world.advisory(gone, kept)))
    assert violation.evidence["withdrawn_by"] == "INVENTED-1"
    assert world.review(world.pinned(), world.facts(world.advisory(gone))) == []


@pytest.mark.parametrize("severity", [None, "low", "critical"])
def test_malware_refuses_whatever_its_rating_path_or_waiver(world, severity):
    manifest = world.pinned()
    record = world.record("MAL-1", versions=("1.0.0",), severity=severity, is_malware=True)
    facts = world.facts(
        world.advisory(record, paths=("lora",)),
        policy=Policy(refuse_affected_from=Severity.CRITICAL),
        waivers=(world.waiver(manifest, advisory="MAL-1"), world.waiver(manifest, name="w-2", rule="malware")),
        triage=(world.triage("MAL-1"),),
    )
    violations = world.review(manifest, facts)
    assert world.refusing(violations) == {"malware"}
    assert any("can't be waived" in item.message for item in world.of("waiver-valid", violations))


def test_a_malicious_release_says_nothing_about_its_neighbours(world):
    record = world.record("MAL-1", versions=("0.20.0",), is_malware=True)
    assert world.review(world.pinned(), world.facts(world.advisory(record))) == []


def test_a_package_without_records_is_unknown_never_clean(world):
    facts = world.facts(data=world.data(advisories=()))
    (violation,) = world.review(world.pinned(), facts)
    assert (violation.rule, violation.severity) == ("advisory-data", Enforcement.ADVISORY)
    assert violation.message == "unknown: no advisory data for vllm"


def test_a_quarantined_record_leaves_its_package_unknown(world):
    broken = Quarantined(source="x.json", id="INVENTED-9", package="vllm", reason="not JSON")
    (violation,) = world.review(world.pinned(), world.facts(data=world.data(quarantined=(broken,))))
    assert "INVENTED-9" in violation.message
    other = broken.model_copy(update={"package": "sglang"})
    assert world.review(world.pinned(), world.facts(data=world.data(quarantined=(other,)))) == []


@pytest.mark.parametrize(
    ("limit", "age", "refuses"), [(7, 7, False), (7, 8, True), (0, 0, False), (None, 4000, False), (7, None, True)]
)
def test_the_age_of_the_data_refuses_past_the_policys_limit(world, limit, age, refuses):
    retrieved: date | None = None if age is None else world.today - timedelta(days=age)
    facts = world.facts(data=world.data(retrieved=retrieved), policy=Policy(max_advisory_age_days=limit))
    violations = world.review(world.pinned(), facts)
    assert world.refusing(violations) == ({"advisory-age"} if refuses else set())
    assert len(violations) == refuses
