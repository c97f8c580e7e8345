"""Explicit denials, flags, secrets in flags, and code that comes with a model."""

import pytest

from fleet.policy import Denial, Policy
from fleet.rules.credentials import carries_secret
from fleet.violation import Enforcement

DENIED = Policy(denials=(Denial(workload="chat", engine="vllm", reason="decided on paper"),))


def test_a_denied_engine_refuses_with_the_reason_and_no_waiver_helps(world):
    manifest = world.pinned()
    facts = world.facts(policy=DENIED, waivers=(world.waiver(manifest, rule="engine-denied"),))
    (violation,) = world.of("engine-denied", world.review(manifest, facts))
    assert violation.severity is Enforcement.MANDATORY
    assert "decided on paper" in violation.message


@pytest.mark.parametrize("changes", [{"workload": "batch"}, {"engine": {"name": "sglang"}}])
def test_another_workload_or_engine_is_not_denied(world, changes):
    assert world.review(world.pinned(**changes), world.facts(policy=DENIED)) == []


def test_a_flag_that_the_version_lacks_refuses_at_the_flag(world):
    catalogue = world.catalogue(bad_flags={"--task": "vllm 1.0.0 has no --task; 0.9.2 had it"})
    (violation,) = world.review(world.pinned(engine={"flags": {"--task": "embed"}}), None, catalogue)
    assert (violation.rule, violation.pointer) == ("flags-valid", "/spec/engine/flags/--task")
    assert violation.message == "vllm 1.0.0 has no --task; 0.9.2 had it"
    assert world.review(world.pinned(engine={"flags": {"--max-logprobs": 5}}), None, catalogue) == []


SECRET = "gsk_inventedinventedinvented123"


@pytest.mark.parametrize(
    "flag",
    ["--api-key", "--api_key", "--admin-api-key", "--hf-token", "--ssl-keyfile-password", "--kv-transfer-config"],
)
def test_a_secret_in_a_flag_refuses_and_is_never_repeated(world, flag):
    (violation,) = world.review(world.pinned(engine={"flags": {flag: SECRET}}))
    assert (violation.rule, violation.severity) == ("flags-without-secrets", Enforcement.MANDATORY)
    assert flag in violation.message
    assert SECRET not in violation.model_dump_json()


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--max-num-batched-tokens", 8192),
        ("--tokenizer", "invented/model"),
        ("--ssl-keyfile", "/keys/tls.key"),
        ("--allow-credentials", True),
        ("--spec-tokens", 3),
        ("--speculative-token-map", "invented/map.pt"),
        ("--tokenizer-revision", "0123456789abcdef0123456789abcdef01234567"),
    ],
)
def test_flags_that_only_sound_like_secrets_pass(flag, value):
    assert not carries_secret(flag, value)


@pytest.mark.parametrize(
    "value", ["sk-" + "a1" * 12, "Bearer abcdefgh12", "-----BEGIN PRIVATE KEY-----", "hf_" + "x" * 20]
)
def test_a_value_that_looks_like_a_key_is_a_secret_under_any_flag(value):
    assert carries_secret("--model-loader-extra-config", value)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"features": {"trust_remote_code": True}}, "/spec/features/trust_remote_code"),
        ({"engine": {"flags": {"--trust-remote-code": True}}}, "/spec/engine/flags/--trust-remote-code"),
        ({"engine": {"flags": {"--trust_remote_code": "true"}}}, "/spec/engine/flags/--trust_remote_code"),
    ],
)
def test_remote_code_refuses_wherever_it_is_switched_on(world, changes, pointer):
    (violation,) = world.review(world.pinned(**changes))
    assert (violation.rule, violation.pointer, violation.severity) == ("remote-code", pointer, Enforcement.MANDATORY)


def test_remote_code_switched_off_by_flag_passes(world):
    assert world.review(world.pinned(engine={"flags": {"--trust-remote-code": False}})) == []
