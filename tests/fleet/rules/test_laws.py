"""Laws of the review, for any advisories, policy, waivers and exposure."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.policy import Denial, Policy
from fleet.rules import RULES
from fleet.severity import Severity
from fleet.violation import Enforcement
from fleet.waiver import TriageStatus

VERSIONS = ("0.17.0", "0.18.1", "0.19.0", "0.20.0", "1.0.0")
PATHS = ("core", "multimodal", "structured-output", "lora", "weight-endpoints")
SEVERITIES = (None, *(severity.value for severity in Severity))


def keys(violations):
    return {(item.rule, item.pointer, item.advisory) for item in violations}


def mandatory(violations):
    return keys(item for item in violations if item.severity is Enforcement.MANDATORY)


@st.composite
def advisories(draw, world):
    made = []
    for number in range(draw(st.integers(0, 5))):
        bound = draw(st.sampled_from(["fixed", "last_affected", "versions", "nothing"]))
        version = draw(st.sampled_from((*VERSIONS, "2.0.0")))
        given_bound = {"versions": (version,)} if bound == "versions" else {bound: version}
        record = world.record(
            f"INVENTED-{number}",
            severity=draw(st.sampled_from(SEVERITIES)),
            is_malware=draw(st.integers(0, 9)) == 0,
            withdrawn=draw(st.sampled_from([None, None, None, "2029-01-01T00:00:00Z"])),
            aliases=draw(st.sampled_from([(), (f"ALIAS-{number}",)])),
            **({} if bound == "nothing" else given_bound),
        )
        paths = draw(st.sets(st.sampled_from(PATHS), max_size=2))
        made.append(world.advisory(record, paths=tuple(sorted(paths)), confirmed=draw(st.booleans())))
    return tuple(made)


@st.composite
def manifests(draw, world):
    canary = draw(st.sampled_from([None, "sglang", "vllm"]))
    return world.pinned(
        engine={
            "version": draw(st.sampled_from((*VERSIONS, "0.18.2"))),
            "flags": draw(st.sampled_from([{}, {"--trust-remote-code": True}])),
        },
        features={
            "modalities": draw(st.sampled_from([("text",), ("text", "image")])),
            "structured_output": draw(st.booleans()),
            "trust_remote_code": draw(st.booleans()),
        },
        hardware={"gpus": draw(st.sampled_from([1, 2]))},
        canary=canary and {"engine": {"name": canary, "version": "0.19.0"}},
    )


@st.composite
def policies(draw):
    return Policy(
        refuse_affected_from=draw(st.sampled_from(Severity)),
        residuals_need_triage_from=draw(st.sampled_from([None, *Severity])),
        unrated_affected_needs_triage=draw(st.booleans()),
        allow_runtime_process=draw(st.booleans()),
        max_advisory_age_days=draw(st.sampled_from([None, 0, 30])),
        max_waiver_days=draw(st.sampled_from([3, 30])),
    )


@st.composite
def waivers(draw, world, manifest):
    named = draw(
        st.sampled_from(
            [{"advisory": f"INVENTED-{number}"} for number in range(3)]
            + [{"advisory": "ALIAS-0"}, {"advisory": "INVENTED-NOWHERE"}]
            + [{"rule": rule.id} for rule in RULES]
            + [{"rule": "no-such-rule"}, {}, {"rule": "remote-code", "advisory": "INVENTED-0"}]
        )
    )
    return world.waiver(
        manifest,
        name=f"w-{draw(st.integers(0, 99))}",
        owner=draw(st.sampled_from(["ada", " "])),
        expires=world.today + timedelta(days=draw(st.integers(-2, 40))),
        **named,
    )


@st.composite
def triages(draw, world):
    return world.triage(
        f"INVENTED-{draw(st.integers(0, 3))}",
        status=draw(st.sampled_from(TriageStatus)),
        versions=draw(st.sampled_from([(), ("0.19.0",), ("1.0.0",)])),
        expires=world.today + timedelta(days=draw(st.integers(-2, 40))),
    )


@st.composite
def stricter(draw, policy):
    residuals = policy.residuals_need_triage_from
    lower_residuals = [item for item in Severity if residuals is None or item.rank <= residuals.rank]
    ages = [age for age in (0, 5, 30) if policy.max_advisory_age_days is None or age <= policy.max_advisory_age_days]
    lower = [item for item in Severity if item.rank <= policy.refuse_affected_from.rank]
    return Policy(
        refuse_affected_from=draw(st.sampled_from(lower)),
        residuals_need_triage_from=draw(st.sampled_from([residuals, *lower_residuals])),
        unrated_affected_needs_triage=policy.unrated_affected_needs_triage or draw(st.booleans()),
        allow_runtime_process=policy.allow_runtime_process and draw(st.booleans()),
        max_advisory_age_days=draw(st.sampled_from([policy.max_advisory_age_days, *ages])),
        max_waiver_days=draw(st.integers(1, policy.max_waiver_days)),
        denials=draw(st.sampled_from([(), (Denial(workload="chat", engine="vllm", reason="invented"),)])),
    )


@pytest.fixture(scope="session")
def situation(world):
    """Draws a manifest and the facts that it is judged against."""

    def drawn(data):
        manifest = data.draw(manifests(world))
        facts = world.facts(
            *data.draw(advisories(world)),
            policy=data.draw(policies()),
            waivers=tuple(data.draw(st.lists(waivers(world, manifest), max_size=3))),
            triage=tuple(data.draw(st.lists(triages(world), max_size=2))),
        )
        return manifest, facts

    return drawn


@settings(max_examples=60)
@given(data=st.data())
def test_adding_a_waiver_never_adds_a_mandatory_violation(world, situation, data):
    manifest, facts = situation(data)
    waiver = data.draw(waivers(world, manifest))
    more = facts.model_copy(update={"waivers": (*facts.waivers, waiver)})
    assert mandatory(world.review(manifest, more)) <= mandatory(world.review(manifest, facts))


@settings(max_examples=60)
@given(data=st.data())
def test_a_waiver_excuses_only_what_it_names_and_hides_nothing(world, situation, data):
    manifest, facts = situation(data)
    without = facts.model_copy(update={"waivers": ()})
    waiver = data.draw(waivers(world, manifest))
    before, after = (
        world.review(manifest, without),
        world.review(manifest, facts.model_copy(update={"waivers": (waiver,)})),
    )
    assert keys(before) <= keys(after)
    excused = [item for item in before if (item.rule, item.pointer, item.advisory) not in mandatory(after)]
    refused = [item for item in excused if item.severity is Enforcement.MANDATORY]
    for item in refused:
        names = {item.advisory, *item.evidence.get("aliases", "").split(", ")}
        assert waiver.rule == item.rule or waiver.advisory in names
        assert waiver.holds_on(world.today)
        assert item.rule not in ("malware", "engine-denied", "four-pins")


@settings(max_examples=60)
@given(data=st.data())
def test_a_stricter_policy_never_removes_a_mandatory_violation(world, situation, data):
    manifest, facts = situation(data)
    strict = facts.model_copy(update={"policy": data.draw(stricter(facts.policy))})
    assert mandatory(world.review(manifest, facts)) <= mandatory(world.review(manifest, strict))


@settings(max_examples=60)
@given(data=st.data())
def test_the_order_of_facts_changes_nothing(world, situation, data):
    manifest, facts = situation(data)
    shuffled = facts.model_copy(
        update={
            "data": world.data().model_copy(
                update={"advisories": tuple(data.draw(st.permutations(facts.data.advisories)))}
            ),
            "waivers": facts.waivers[::-1],
            "triage": facts.triage[::-1],
        }
    )
    first = world.review(manifest, facts)
    assert world.review(manifest, facts) == first
    assert keys(world.review(manifest, shuffled)) == keys(first)
    unordered = facts.model_copy(update={"data": shuffled.data})
    assert world.review(manifest, unordered) == first


@settings(max_examples=60)
@given(data=st.data())
def test_more_exposure_never_means_fewer_violations(world, situation, data):
    manifest, facts = situation(data)
    some = data.draw(st.sets(st.sampled_from(PATHS)))
    more = some | data.draw(st.sets(st.sampled_from(PATHS)))
    little = world.review(manifest, facts, world.catalogue(always=tuple(some)))
    much = world.review(manifest, facts, world.catalogue(always=tuple(more)))
    assert keys(little) <= keys(much)
    assert mandatory(little) <= mandatory(much)


@settings(max_examples=60)
@given(data=st.data())
def test_another_advisory_never_clears_anything(world, situation, data):
    manifest, facts = situation(data)
    extra = world.advisory(name="INVENTED-EXTRA", fixed="2.0.0", severity="critical")
    more = facts.model_copy(update={"data": world.data(*facts.data.advisories[:-2], extra)})
    before, after = mandatory(world.review(manifest, facts)), mandatory(world.review(manifest, more))
    assert before < after


@settings(max_examples=60)
@given(data=st.data())
def test_every_violation_is_of_the_table_and_points_into_the_manifest(world, situation, data):
    manifest, facts = situation(data)
    document = manifest.model_dump(mode="json")
    for violation in world.review(manifest, facts):
        assert violation.rule in {rule.id for rule in RULES}
        place = document
        for part in violation.pointer.split("/")[1:]:
            assert part in place
            place = place[part]
