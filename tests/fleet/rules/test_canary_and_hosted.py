"""A canary runs another engine and is judged like it; a hosted engine is known and its key is a reference."""

import pytest

from fleet.policy import Denial, Policy
from fleet.rules.credentials import has_credentials, looks_like_key
from fleet.violation import Enforcement


def canary(world, **engine):
    return {"engine": {"name": "sglang", "version": "1.0.0", "image": world.image()} | engine}


def hosted(world, **changes):
    plain = {"name": "groq", "endpoint": "https://hosted.invalid/v1", "api_key_ref": "groq-key", "model": "invented"}
    return world.written(engine=None, batch=None, hardware=None, hosted=plain | changes)


def test_a_canary_on_another_clean_engine_passes(world):
    assert world.review(world.pinned(canary=canary(world))) == []


@pytest.mark.parametrize(("name", "found"), [("vllm", "runs vllm"), (None, "names no engine")])
def test_a_canary_must_name_another_engine(world, name, found):
    violations = world.of("canary-other-engine", world.review(world.pinned(canary={"engine": {"name": name}})))
    assert [(item.pointer, item.severity) for item in violations] == [
        ("/spec/canary/engine/name", Enforcement.MANDATORY)
    ]
    assert found in violations[0].message
    assert "sglang" in violations[0].remedy


def test_a_canary_is_judged_by_the_rules_of_its_own_engine(world):
    manifest = world.pinned(canary=canary(world, version="0.18.2", flags={"--api-key": "invented"}))
    facts = world.facts(
        world.advisory(package="sglang", fixed="2.0.0"),
        policy=Policy(denials=(Denial(workload="chat", engine="sglang", reason="invented"),)),
    )
    found = {(item.rule, item.pointer) for item in world.review(manifest, facts)}
    assert found == {
        ("version-published", "/spec/canary/engine/version"),
        ("image-recorded", "/spec/canary/engine/image"),
        ("advisory-affected", "/spec/canary/engine/version"),
        ("engine-denied", "/spec/canary/engine/name"),
        ("flags-without-secrets", "/spec/canary/engine/flags/--api-key"),
    }


def test_violations_of_a_canary_say_that_they_are_its(world):
    violations = world.review(world.pinned(canary=canary(world, version="0.18.2")), world.facts(images=()))
    assert any(item.message.startswith("canary: sglang 0.18.2 is not published") for item in violations)


def test_what_both_arms_share_is_said_once(world):
    manifest = world.pinned(hardware={"gpus": 2}, model={"revision": "main"}, canary=canary(world))
    violations = world.review(manifest)
    assert [item.rule for item in violations] == ["model-revision", "gpus-match-plan"]


def test_an_open_version_of_a_canary_is_told_since_it_is_pinned_as_an_arm_of_its_own(world):
    violations = world.review(world.pinned(canary={"engine": {"name": "sglang"}}))
    assert {(item.rule, item.severity) for item in violations} == {("four-pins", Enforcement.ADVISORY)}


def test_a_canary_needs_the_waiver_of_its_own_identity(world):
    manifest = world.pinned(features={"trust_remote_code": True}, canary=canary(world))
    own = world.facts(waivers=(world.waiver(manifest, rule="remote-code"),))
    left = [item for item in world.review(manifest, own) if item.severity is Enforcement.MANDATORY]
    assert [item.message.partition(":")[0] for item in left] == ["canary"]
    arm = world.pinned(
        engine={"name": "sglang", "version": "1.0.0", "image": world.image()}, features={"trust_remote_code": True}
    )
    both = world.facts(
        waivers=(*own.waivers, world.waiver(arm, name="w-2", rule="remote-code")),
    )
    assert world.refusing(world.review(manifest, both)) == set()


@pytest.mark.parametrize("changes", [{}, {"features": {"trust_remote_code": True}}, {"model": {"revision": None}}])
def test_a_hosted_engine_is_judged_by_the_rules_that_apply(world, changes):
    manifest = hosted(world)
    spec = manifest.spec.model_dump() | changes | {"model": manifest.spec.model.model_dump() | changes.get("model", {})}
    assert world.review(manifest.model_validate({"metadata": {"name": "hosted"}, "spec": spec})) == []


def test_a_hosted_engine_that_the_catalogue_does_not_know_refuses(world):
    (violation,) = world.review(hosted(world, name="cerebras"))
    assert (violation.rule, violation.pointer) == ("hosted-known", "/spec/hosted/name")
    assert "groq" in violation.remedy


def test_a_hosted_engine_can_be_denied(world):
    policy = Policy(denials=(Denial(workload="chat", engine="groq", reason="data leaves the house"),))
    (violation,) = world.review(hosted(world), world.facts(policy=policy))
    assert (violation.rule, violation.pointer) == ("engine-denied", "/spec/hosted/name")


KEY = "gsk_" + "Ab3" * 16


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("api_key_ref", KEY),
        ("api_key_ref", "csk-" + "a1b2c3" * 8),
        ("api_key_ref", " "),
        ("endpoint", f"https://user:{KEY}@hosted.invalid/v1"),
        ("endpoint", f"https://hosted.invalid/v1?api_key={KEY}"),
    ],
)
def test_a_key_in_a_manifest_refuses_and_is_never_repeated(world, field, value):
    (violation,) = world.review(hosted(world, **{field: value}))
    assert (violation.rule, violation.pointer) == ("hosted-key-by-reference", f"/spec/hosted/{field}")
    assert violation.severity is Enforcement.MANDATORY
    assert KEY not in violation.model_dump_json()


@pytest.mark.parametrize(
    "name",
    [
        "groq-key",
        "GROQ_API_KEY",
        "GROQ_API_KEY_PRODUCTION_2029_V1",
        "enginehouse/prod/groq-api-key",
        "arn:aws:secretsmanager:eu-central-1:123456789012:secret:groq-api-key",
        "a-rather-long-name-of-a-secret-in-the-cluster-of-production",
    ],
)
def test_names_of_secrets_are_not_keys(name):
    assert not looks_like_key(name)


def test_an_endpoint_with_a_harmless_query_carries_no_credentials():
    assert not has_credentials("https://hosted.invalid/v1?region=eu")
    assert has_credentials("https://hosted.invalid/v1?token=x")
