"""The rules on the bundled records with the real engine catalogue and the invented facts of tests."""

from datetime import date
from pathlib import Path

import pytest

from engines.catalogue import load
from fleet.facts import Facts
from fleet.manifest import PinnedManifest, PinRecord, parse
from fleet.policy import Policy
from fleet.rules import review, suppressed
from fleet.severity import Severity
from fleet.violation import Enforcement
from sources import environment
from sources.errors import SourceError
from sources.snapshot import bundled

TODAY = date(2030, 1, 1)
LOCAL = Policy(allow_runtime_process=True)
PROD = Policy(residuals_need_triage_from=Severity.HIGH, unrated_affected_needs_triage=True)


@pytest.fixture(scope="module")
def invented(checkout: Path):
    return environment.read(checkout / "tests/data/fixtures/environment", allow_invented=True)


def facts(policy=LOCAL, **changes):
    return Facts(today=TODAY, data=bundled(), policy=policy, catalogue_digest=load().digest, **changes)


def pinned(name, version, *, image=None, **features):
    text = f"""
    apiVersion: enginehouse.dev/v1
    kind: InferenceDeployment
    metadata: {{name: real}}
    spec:
      workload: chat
      model: {{id: Qwen/Qwen3-32B, revision: 9216db5781bf21249d130ec9da846c4624c16137}}
      engine: {{name: {name}, version: "{version}", runtime: {"image" if image else "process"}}}
      batch: {{max_model_len: 8192}}
      hardware: {{instance_type: p5.48xlarge, gpus: 2}}
      parallelism: {{tensor: 2}}
    """
    written = parse(text)
    pin = PinRecord(
        source_digest=written.source_digest,
        facts_digest="",
        catalogue_digest="",
        runtime="image" if image else "process",
    )
    document = written.spec.model_dump(mode="json", exclude_none=True) | {"features": features}
    document["engine"] |= {"image": image} if image else {}
    return PinnedManifest.model_validate({"metadata": {"name": "real"}, "spec": document, "pin": pin.model_dump()})


def refusing(violations):
    return {item.advisory or item.rule for item in violations if item.severity is Enforcement.MANDATORY}


def test_the_newest_vllm_has_residuals_and_nothing_that_refuses():
    violations = review(pinned("vllm", "0.33.0"), facts(), load())
    assert refusing(violations) == set()
    assert {item.rule for item in violations} == {"advisory-residual"}


def test_vllm_0_18_2_was_never_published():
    violations = review(pinned("vllm", "0.18.2"), facts(), load())
    (violation,) = [item for item in violations if item.rule == "version-published"]
    assert violation.message == "vllm 0.18.2 is not published; near it: 0.18.1, 0.19.0"
    assert "take vllm 0.33.0" in violation.remedy


def test_what_text_alone_does_not_reach_is_suppressed_and_refuses_a_deployment_that_takes_images():
    images = pinned("vllm", "0.18.1", modalities=["text", "image"])
    text = pinned("vllm", "0.18.1")
    off = {match.advisory.id for match in suppressed(text, facts(), load())}
    reached = refusing(review(images, facts(), load())) - refusing(review(text, facts(), load()))
    assert reached
    assert reached <= off
    assert refusing(review(text, facts(), load()))


def test_of_a_version_older_than_every_flag_list_nothing_is_known_to_be_off():
    violations = review(pinned("vllm", "0.14.0"), facts(), load())
    assert "CVE-2026-22778" in refusing(violations)


@pytest.mark.parametrize("name", ["sglang-text-only-0.4.3", "vllm-multimodal-0.18.1", "vllm-multimodal-0.18.2"])
def test_the_public_runbook_is_refused_with_records(checkout: Path, name):
    manifest = parse((checkout / "examples/runbook-2026" / f"{name}.yaml").read_text(encoding="utf-8"))
    refused = [item for item in review(manifest, facts(), load()) if item.severity is Enforcement.MANDATORY]
    records = [item for item in refused if item.advisory]
    assert records
    assert all(item.evidence["reference"].startswith("https://") for item in records)


def test_no_final_tensorrt_llm_is_acceptable_and_the_remedy_names_a_pre_release():
    violations = review(pinned("tensorrt-llm", "1.2.1"), facts(), load())
    affected = [item for item in violations if item.rule == "advisory-affected"]
    assert affected
    assert all("take tensorrt-llm 1.4.0rc1" in item.remedy for item in affected)


def test_a_package_that_the_data_does_not_name_is_unknown():
    violations = review(pinned("lmdeploy", "0.18.0"), facts(), load())
    assert "unknown: no advisory data for lmdeploy" in {item.message for item in violations}


def test_deepspeed_is_not_offered():
    assert "engine-offered" in refusing(review(pinned("deepspeed", "0.15.1"), facts(), load()))


def test_prod_wants_a_word_on_every_high_residual_and_takes_a_valid_one(invented):
    manifest = pinned("vllm", "0.33.0", image=invented.images[0].digest)
    bare = review(manifest, facts(PROD, images=invented.images), load())
    assert refusing(bare)
    assert all(item.evidence["severity"] in ("high", "critical") for item in bare if item.advisory in refusing(bare))
    triaged = review(manifest, facts(PROD, images=invented.images, triage=invented.triage), load())
    assert "PYSEC-2026-4324" not in {item.advisory for item in triaged}
    assert refusing(triaged) < refusing(bare)
    (note,) = [item for item in triaged if item.advisory == "CVE-2026-53923"]
    assert "triaged accepted by invented-owner until 2030-03-31" in note.message


def test_invented_facts_are_refused_outside_tests(checkout: Path):
    with pytest.raises(SourceError, match="for tests alone"):
        environment.read(checkout / "tests/data/fixtures/environment")


def test_an_invented_waiver_binds_to_the_identity_that_a_test_gives_it(invented):
    manifest = pinned("vllm", "0.33.0", trust_remote_code=True)
    (waiver,) = [item for item in invented.waivers if item.rule == "remote-code"]
    bound = waiver.model_copy(update={"identity": manifest.identity})
    assert "remote-code" in refusing(review(manifest, facts(waivers=(waiver,)), load()))
    assert "remote-code" not in refusing(review(manifest, facts(waivers=(bound,)), load()))


def test_flags_and_abilities_come_from_the_catalogue():
    manifest = pinned("vllm", "0.33.0")
    engine = manifest.spec.engine.model_copy(update={"flags": {"--max-model-lenght": 5}})
    wrong = manifest.model_copy(update={"spec": manifest.spec.model_copy(update={"engine": engine})})
    (violation,) = [item for item in review(wrong, facts(), load()) if item.rule == "flags-valid"]
    assert violation.pointer == "/spec/engine/flags/--max-model-lenght"
    assert "0.33.0" in violation.message
