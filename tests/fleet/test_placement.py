"""Placement on the real catalogue and the bundled snapshot: a choice, or the reason for every rejection."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.catalogue import load
from fleet.facts import Facts
from fleet.images import ImageRecord
from fleet.manifest import Manifest, PinnedManifest, parse
from fleet.placement import choose, repin
from fleet.policy import Policy
from fleet.rules import review
from fleet.severity import Severity
from fleet.spec import EngineName, Workload
from fleet.violation import refuses
from sources.snapshot import bundled

CATALOGUE = load()
FACTS = Facts(
    today=date(2026, 11, 29),
    data=bundled(),
    policy=Policy(allow_runtime_process=True),
    catalogue_digest=CATALOGUE.digest,
)


def written(**spec: object) -> Manifest:
    manifest = parse(
        """
kind: InferenceDeployment
metadata: {name: support-chat}
spec:
  workload: chat
  model: {id: Qwen/Qwen3-8B, revision: b968826d9c46dd6066d109eabc6255188de91218}
  batch: {max_model_len: 8192}
  hardware: {instance_type: g6.xlarge, gpus: 1}
"""
    )
    document = manifest.model_dump(mode="json", exclude_unset=True)
    document["spec"] |= spec
    return Manifest.model_validate(document)


@given(st.sampled_from(list(Workload)), st.sampled_from([None, "vllm", "sglang", "tensorrt-llm", "lmdeploy"]))
def test_what_is_pinned_passes_its_own_review_and_whatever_is_not_has_a_reason(
    workload: Workload, engine: str | None
) -> None:
    wish = {"engine": {"name": engine}} if engine else {}
    choice = choose(written(workload=workload, **wish), FACTS, CATALOGUE)
    if choice.pinned is not None:
        assert not refuses(review(choice.pinned, FACTS, CATALOGUE))
        assert choice.chosen is not None
        assert choice.chosen.version == (choice.pinned.spec.engine and choice.pinned.spec.engine.version)
    else:
        assert choice.rejections or refuses(choice.violations)
    assert all(rejection.reason for rejection in choice.rejections)


@given(st.sampled_from(list(Workload)))
def test_every_engine_that_was_not_taken_has_a_rejection(workload: Workload) -> None:
    choice = choose(written(workload=workload), FACTS, CATALOGUE)
    taken = {choice.chosen.engine} if choice.chosen else set()
    assert {rejection.engine for rejection in choice.rejections} | taken >= set(CATALOGUE.names)


@given(st.sampled_from(list(Workload)))
def test_a_pre_release_is_taken_only_where_the_manifest_names_its_engine(workload: Workload) -> None:
    choice = choose(written(workload=workload), FACTS, CATALOGUE)
    assert choice.chosen is None or not choice.chosen.is_prerelease
    named = choose(written(workload=workload, engine={"name": "tensorrt-llm"}), FACTS, CATALOGUE)
    assert named.chosen is None or named.chosen.engine is EngineName.TENSORRT_LLM


def test_a_development_build_is_never_taken() -> None:
    listed = {**FACTS.data.published, "vllm": ("0.33.1.dev7", "0.30.0")}
    facts = FACTS.model_copy(update={"data": FACTS.data.model_copy(update={"published": listed})})
    choice = choose(written(engine={"name": "vllm"}), facts, CATALOGUE)
    assert choice.chosen is None
    assert "0.33.1.dev7" not in {rejection.version for rejection in choice.rejections}


def test_a_version_that_was_never_published_is_rejected_with_its_neighbours() -> None:
    choice = choose(written(engine={"name": "vllm", "version": "0.18.2"}), FACTS, CATALOGUE)
    assert choice.chosen is None
    assert choice.rejections[0].rule == "version-published"
    assert "near it: 0.18.1, 0.19.0" in choice.rejections[0].reason


def test_a_canary_gets_another_engine_and_its_own_identity() -> None:
    choice = choose(written(canary={"engine": {"name": "sglang"}, "share": 0.05}), FACTS, CATALOGUE)
    assert choice.pinned is not None
    assert choice.canary is not None
    assert choice.canary.pinned is not None
    assert choice.canary.pinned.engine_name is EngineName.SGLANG
    assert choice.canary.pinned.identity != choice.pinned.identity
    assert choice.canary.pinned.served_name == choice.pinned.served_name
    assert choice.pinned.spec.canary is not None
    assert choice.pinned.spec.canary.engine.version == choice.canary.chosen.version if choice.canary.chosen else False


@pytest.mark.parametrize("wish", ["vllm", None])
def test_the_canary_never_runs_the_engine_of_the_first_arm(wish: str | None) -> None:
    canary = {"engine": {"name": wish} if wish else {}, "share": 0.05}
    choice = choose(written(engine={"name": "vllm"}, canary=canary), FACTS, CATALOGUE)
    arm = choice.canary and choice.canary.chosen
    assert arm is None or arm.engine is not EngineName.VLLM


def test_a_recorded_digest_is_pinned_and_a_missing_one_leaves_the_choice_unpinned() -> None:
    strict = FACTS.model_copy(update={"policy": Policy()})
    unpinned = choose(written(engine={"name": "vllm"}), strict, CATALOGUE)
    assert unpinned.chosen is not None
    assert unpinned.pinned is None
    assert refuses(unpinned.violations)
    digest = "example.invalid/vllm@sha256:" + "0" * 64
    image = ImageRecord(engine="vllm", version="0.33.0", digest=digest, date=date(2026, 11, 29), who="a test")
    pinned = choose(written(engine={"name": "vllm"}), strict.model_copy(update={"images": (image,)}), CATALOGUE).pinned
    assert pinned is not None
    assert pinned.spec.engine is not None
    assert pinned.spec.engine.image == digest
    assert pinned.pin.runtime == "image"


def test_a_process_stands_for_an_image_only_where_the_pin_says_so() -> None:
    pinned = choose(written(), FACTS, CATALOGUE).pinned
    assert pinned is not None
    assert pinned.pin.runtime == "process"


@given(st.sampled_from(list(Workload)), st.booleans())
def test_an_engine_without_advisory_data_is_taken_only_by_name(workload: Workload, strict: bool) -> None:
    policy = Policy(allow_runtime_process=True, residuals_need_triage_from=Severity.HIGH if strict else None)
    facts = FACTS.model_copy(update={"policy": policy})
    choice = choose(written(workload=workload), facts, CATALOGUE)
    assert choice.chosen is None or choice.chosen.engine is not EngineName.LMDEPLOY
    unknown = next(item for item in choice.rejections if item.engine == "lmdeploy")
    assert (unknown.rule, unknown.version) == ("advisory-data", None)


def test_a_manifest_that_wants_a_process_gets_no_image() -> None:
    digest = "example.invalid/vllm@sha256:" + "0" * 64
    image = ImageRecord(engine="vllm", version="0.33.0", digest=digest, date=date(2026, 11, 29), who="a test")
    facts = FACTS.model_copy(update={"images": (image,)})
    pinned = choose(written(engine={"name": "vllm", "runtime": "process"}), facts, CATALOGUE).pinned
    assert pinned is not None
    assert pinned.spec.engine is not None
    assert (pinned.spec.engine.image, pinned.pin.runtime) == (None, "process")


def test_the_proposal_after_an_advisory_is_the_same_engine_at_an_acceptable_version() -> None:
    old = written(engine={"name": "vllm", "version": "0.30.0", "runtime": "process"})
    document = old.model_dump(mode="json", exclude_none=True) | {
        "kind": "PinnedInferenceDeployment",
        "pin": {"source_digest": "s", "facts_digest": "f", "catalogue_digest": "c", "runtime": "process"},
    }
    before = PinnedManifest.model_validate(document)
    proposal = repin(before, FACTS, CATALOGUE).pinned
    assert proposal is not None
    assert proposal.spec.engine is not None
    assert (proposal.engine_name, proposal.spec.engine.version) == (EngineName.VLLM, "0.33.0")
    assert proposal.identity != before.identity
    assert proposal.pin.source_digest == "s"


def test_a_hosted_engine_is_pinned_as_it_is_written() -> None:
    hosted = {"name": "groq", "endpoint": "https://api.example.invalid", "api_key_ref": "groq-key", "model": "m"}
    document = written().model_dump(mode="json", exclude_none=True)
    for key in ("batch", "hardware"):
        del document["spec"][key]
    document["spec"]["hosted"] = hosted
    choice = choose(Manifest.model_validate(document), FACTS, CATALOGUE)
    assert choice.pinned is not None, choice.violations
    assert choice.pinned.engine_name is None
