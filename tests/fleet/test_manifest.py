"""Manifests: round trips, the identity, and what is said about bad ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.manifest import AnyManifest, Manifest, ManifestError, PinnedManifest, dump, from_document, parse

WRITTEN = """
apiVersion: enginehouse.dev/v1
kind: InferenceDeployment
metadata: {name: support-chat, labels: {team: support}}
spec:
  workload: chat
  model: {id: Qwen/Qwen3-32B, revision: 9216db5781bf21249d130ec9da846c4624c16137, quantization: fp8}
  engine: {name: vllm, version: 0.33.0, runtime: process, flags: {--max-num-queued-reqs: 64, --enable-lora: true}}
  batch: {max_model_len: 32768, max_num_seqs: 128}
  hardware: {instance_type: p5.48xlarge, gpus: 2}
  parallelism: {tensor: 2}
  objectives: {ttft_p95_seconds: 0.5}
  scaling: {min: 1, max: 8}
  canary: {engine: {name: sglang}, share: 0.02}
  access: {tenants: [acme, globex], output_filter: pii}
"""
PIN = "\npin: {source_digest: s, facts_digest: f, catalogue_digest: c, runtime: process}\n"


def pinned(text: str = WRITTEN) -> PinnedManifest:
    manifest = parse(text.replace("kind: Inf", "kind: PinnedInf") + PIN)
    assert isinstance(manifest, PinnedManifest)
    return manifest


def error_of(text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        parse(text, source="x.yaml")
    return str(caught.value)


@given(
    st.sampled_from(["chat", "batch", "moe"]),
    st.integers(1, 10**6),
    st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,20}[A-Za-z0-9])?", fullmatch=True),
    st.floats(0.01, 1),
)
def test_what_is_dumped_reads_back_equal(workload: str, length: int, label: str, share: float) -> None:
    document = parse(WRITTEN).model_dump(mode="json")
    document["metadata"]["labels"] = {"note": label}
    document["spec"]["workload"] = workload
    document["spec"]["batch"]["max_model_len"] = length
    document["spec"]["canary"]["share"] = share
    manifest = Manifest.model_validate(document)
    assert parse(dump(manifest)) == manifest


def test_a_pinned_manifest_reads_back_equal_with_the_same_identity() -> None:
    manifest = pinned()
    again = parse(dump(manifest))
    assert isinstance(again, PinnedManifest)
    assert again == manifest
    assert again.identity == manifest.identity
    assert len(manifest.identity) == 32


OUTSIDE = {
    "max: 8": "max: 9",
    "share: 0.02": "share: 0.5",
    "ttft_p95_seconds: 0.5": "ttft_p95_seconds: 1",
    "tenants: [acme, globex]": "tenants: [acme]",
    "  workload: chat": "  workload: chat\n  served_name: other",
}
INSIDE = {
    "version: 0.33.0": "version: 0.32.0",
    "--max-num-queued-reqs: 64": "--max-num-queued-reqs: 65",
    "--enable-lora: true": "--enable-lora: false",
    "quantization: fp8": "quantization: bf16",
    "max_num_seqs: 128": "max_num_seqs: 64",
    "parallelism: {tensor: 2}": "parallelism: {tensor: 1, data: 2}",
    "  objectives:": "  features: {structured_output: true}\n  objectives:",
}


@pytest.mark.parametrize("old", OUTSIDE)
def test_wishes_around_the_pins_leave_the_identity_alone(old: str) -> None:
    assert pinned(WRITTEN.replace(old, OUTSIDE[old])).identity == pinned().identity


@pytest.mark.parametrize("old", INSIDE)
def test_every_pinned_part_changes_the_identity(old: str) -> None:
    assert pinned(WRITTEN.replace(old, INSIDE[old])).identity != pinned().identity


def test_a_share_of_memory_is_part_of_the_identity_and_an_open_one_is_not() -> None:
    hardware = "hardware: {instance_type: p5.48xlarge"
    assert hardware in WRITTEN
    told, open_one = (WRITTEN.replace(hardware, f"{hardware}, memory_share: {share}") for share in ("0.5", "null"))
    assert pinned(told).identity != pinned().identity
    assert pinned(open_one).identity == pinned().identity
    with pytest.raises(ManifestError, match="memory_share"):
        parse(WRITTEN.replace(hardware, f"{hardware}, memory_share: 1.5"))


def test_the_source_digest_changes_with_any_wish_but_not_with_the_spelling() -> None:
    written = parse(WRITTEN)
    respelled = parse(WRITTEN.replace("{min: 1, max: 8}", "{max: 8}"))
    changed = parse(WRITTEN.replace("max: 8", "max: 9"))
    digests = [manifest.source_digest for manifest in (written, respelled, changed) if isinstance(manifest, Manifest)]
    assert digests[0] == digests[1] != digests[2]


def test_an_unknown_field_names_the_nearest() -> None:
    message = error_of(WRITTEN.replace("max_num_seqs", "max_num_seq"))
    assert "/spec/batch/max_num_seq: unknown field 'max_num_seq'; did you mean 'max_num_seqs'?" in message


def test_a_version_that_yaml_reads_as_a_number_is_named() -> None:
    message = error_of(WRITTEN.replace("version: 0.33.0", "version: 0.33"))
    assert "/spec/engine/version: expected text (found 0.33; put it in quotes)" in message


def test_an_alias_is_refused_before_it_can_grow() -> None:
    bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"
    assert "line 2: the alias '*a' is not allowed" in error_of(bomb)


@pytest.mark.parametrize("text", ["a\x85b", "a\nb", "a\u2028b", "\x07"])
def test_text_that_files_would_break_is_refused(text: str) -> None:
    document = parse(WRITTEN).model_dump(mode="json", exclude_none=True)
    document["spec"]["model"]["id"] = text
    with pytest.raises(ManifestError, match="/spec/model/id"):
        from_document(document)


def test_duplicate_keys_are_refused_with_their_line() -> None:
    message = error_of(WRITTEN + "spec: {}\n")
    assert "duplicate key" in message
    assert "line" in message


def test_deep_nesting_and_great_size_are_refused() -> None:
    assert "nested deeper" in error_of("a: " + "[" * 200 + "]" * 200)
    assert "bytes; at most" in error_of("a: " + "x" * 1_100_000)


@pytest.mark.parametrize("text", ["", "[]", "just text", "- a", "{", "a: b: c", "\x00", "kind: Nonsense", "kind: [1]"])
def test_text_that_is_no_manifest_is_an_error_with_its_source(text: str) -> None:
    assert error_of(text).startswith("x.yaml: ")


def test_a_pinned_manifest_with_an_open_part_names_it() -> None:
    text = WRITTEN.replace("kind: Inf", "kind: PinnedInf").replace("version: 0.33.0, ", "") + PIN
    assert "not pinned: /spec/engine/version" in error_of(text)


def test_engine_and_hosted_exclude_each_other() -> None:
    hosted = "  hosted: {name: groq, endpoint: https://api.groq.com/openai, api_key_ref: groq-key, model: m}\n"
    assert "exclude each other" in error_of(WRITTEN + hosted)


def test_both_kinds_are_manifests_by_name() -> None:
    manifests: list[AnyManifest] = [parse(WRITTEN), pinned()]
    assert {manifest.served_name for manifest in manifests} == {"support-chat"}


# --- Alternatives -----------------------------------------------------------------------------------------------
REVISIONS = st.sampled_from((None, "a" * 40, "b" * 40))
CHECKPOINTS = st.tuples(st.sampled_from(("org/one", "org/two", "org/{three}")), REVISIONS)
KINDS = st.sampled_from(("smaller", "distilled", "pruned", "quantized"))


@given(own=CHECKPOINTS, listed=st.lists(st.tuples(CHECKPOINTS, KINDS), max_size=5))
def test_each_alternative_is_another_checkpoint_or_its_place_and_name_are_told(own, listed):
    entries = [{"id": name, "revision": revision, "kind": kind} for (name, revision), kind in listed]
    model = {"id": own[0], "revision": own[1], "alternatives": entries}
    document = {
        "kind": "InferenceDeployment",
        "metadata": {"name": "x"},
        "spec": {"workload": "chat", "model": model},
    }
    checkpoints = [checkpoint for checkpoint, _ in listed]
    wrong = [
        place
        for place, (name, revision) in enumerate(checkpoints)
        if (name, revision) in checkpoints[:place] or (name == own[0] and revision in (None, own[1]))
    ]
    if not wrong:
        assert len(from_document(document).spec.model.alternatives) == len(listed)
        return
    with pytest.raises(ManifestError) as refused:
        from_document(document)
    assert [item.pointer for item in refused.value.problems] == [f"/spec/model/alternatives/{one}" for one in wrong]
    for item, place in zip(refused.value.problems, wrong, strict=True):
        assert checkpoints[place][0] in item.message
        assert "name another checkpoint" in item.message
