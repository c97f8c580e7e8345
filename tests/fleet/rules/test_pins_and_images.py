"""Four pins, commits, images by digest, and pins that have grown stale."""

import pytest

from fleet.policy import Policy
from fleet.rules import stale
from fleet.violation import Enforcement

PROCESS = {"image": None, "runtime": "process"}


@pytest.mark.parametrize(
    ("pointer", "changes"),
    [
        ("/spec/model/revision", {"model": {"revision": None}}),
        ("/spec/engine/name", {"engine": {"name": None}}),
        ("/spec/engine/version", {"engine": {"version": None}}),
        ("/spec/engine/image", {"engine": {"image": None}}),
        ("/spec/batch", {"batch": None}),
        ("/spec/hardware", {"hardware": None}),
    ],
)
def test_an_open_pin_refuses_and_is_named(world, pointer, changes):
    violations = world.review(world.written(**changes))
    assert [(item.pointer, item.severity) for item in world.of("four-pins", violations)] == [
        (pointer, Enforcement.MANDATORY)
    ]


def test_a_written_manifest_with_all_four_pins_passes(world):
    assert world.review(world.written()) == []


def test_a_bare_manifest_names_every_open_part(world):
    violations = world.review(world.written(engine=None, batch=None, hardware=None, model={"revision": None}))
    assert len(world.of("four-pins", violations)) == 6


@pytest.mark.parametrize("revision", ["main", "v1.0", "0123abc", "0123456789ABCDEF0123456789ABCDEF01234567"])
def test_a_revision_that_may_move_refuses(world, revision):
    (violation,) = world.review(world.pinned(model={"revision": revision}))
    assert violation.rule == "model-revision"
    assert revision in violation.message


def test_a_process_refuses_where_the_policy_does_not_let_it(world):
    manifest = world.pinned(runtime="process", engine=PROCESS)
    (violation,) = world.review(manifest)
    assert (violation.rule, violation.pointer) == ("image-by-digest", "/spec/engine/runtime")
    assert "'prod'" in violation.message


def test_a_process_passes_where_the_policy_lets_it_and_the_pin_says_so(world):
    facts = world.facts(policy=Policy(allow_runtime_process=True))
    assert world.review(world.pinned(runtime="process", engine=PROCESS), facts) == []


def test_a_pin_that_says_image_while_a_process_runs_refuses(world):
    facts = world.facts(policy=Policy(allow_runtime_process=True))
    (violation,) = world.review(world.pinned(runtime="image", engine=PROCESS), facts)
    assert (violation.rule, violation.pointer) == ("image-by-digest", "/pin/runtime")


def test_another_digest_than_the_recorded_one_refuses_and_names_both(world):
    (violation,) = world.review(world.pinned(engine={"image": world.image("2")}))
    assert (violation.rule, violation.severity) == ("image-recorded", Enforcement.MANDATORY)
    assert world.image("1") in violation.message
    assert world.image("2") in violation.message
    assert world.image("1") in violation.remedy


def test_a_digest_of_another_version_is_told(world):
    other = world.images()[0].model_copy(update={"digest": world.image("2"), "version": "0.17.0"})
    facts = world.facts(images=(other, *world.images()[1:]))
    (violation,) = world.review(world.pinned(engine={"image": world.image("2")}), facts)
    assert "recorded for vllm 0.17.0" in violation.message


def test_the_digest_of_another_engine_is_not_a_record(world):
    facts = world.facts(images=[item for item in world.images() if item.engine == "sglang"])
    assert "image-recorded" in world.refusing(world.review(world.pinned(), facts))


def test_an_unrecorded_digest_refuses_where_images_are_required_and_is_told_elsewhere(world):
    strict = world.facts(images=())
    lenient = world.facts(images=(), policy=Policy(allow_runtime_process=True))
    (refused,) = world.review(world.pinned(), strict)
    (told,) = world.review(world.pinned(), lenient)
    assert refused.rule == told.rule == "image-recorded"
    assert (refused.severity, told.severity) == (Enforcement.MANDATORY, Enforcement.ADVISORY)
    assert "images.yaml" in refused.remedy


def test_the_digest_is_found_under_another_spelling_of_the_version(world):
    assert world.review(world.pinned(engine={"version": "v1.0.0"})) == []


def test_a_pin_of_the_manifest_as_it_stands_is_not_stale(world):
    assert stale(world.written(), world.pinned()) == []
    assert world.review(world.pinned(), written=world.written()) == []


def test_a_written_manifest_that_changed_makes_the_pin_stale(world):
    written = world.written(batch={"max_model_len": 8192})
    (violation,) = stale(written, world.pinned())
    assert (violation.rule, violation.severity) == ("pin-stale", Enforcement.MANDATORY)
    assert written.source_digest in violation.message
    assert world.pinned().pin.source_digest in violation.message
    assert world.review(world.pinned(), written=written) == [violation]


def test_a_pin_of_another_manifest_is_stale(world):
    (violation,) = stale(world.written("other"), world.pinned())
    assert violation.pointer == "/metadata/name"
