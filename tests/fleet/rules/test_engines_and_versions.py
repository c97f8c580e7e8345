"""The engine is offered, the version exists and can do what is asked."""

import pytest

from fleet.engine import Unsupported
from fleet.spec import EngineName
from fleet.violation import Enforcement


def test_a_version_that_was_never_published_names_its_neighbours(world):
    (violation,) = world.review(world.pinned(engine={"version": "0.18.2"}), world.facts(images=()))[:1]
    assert violation.rule == "version-published"
    assert violation.message == "vllm 0.18.2 is not published; near it: 0.18.1, 0.19.0"
    assert violation.severity is Enforcement.MANDATORY
    assert "1.0.0" in violation.remedy


@pytest.mark.parametrize("version", ["latest", "nightly", "0.18.x", "8f3097e"])
def test_a_floating_tag_is_not_a_version(world, version):
    violations = world.of("version-published", world.review(world.pinned(engine={"version": version})))
    assert [item.severity for item in violations] == [Enforcement.MANDATORY]
    assert f"'{version}' is not a version" in violations[0].message


def test_a_version_that_can_not_be_read_is_exposed_to_every_record(world):
    facts = world.facts(world.advisory(fixed="0.1.0", paths=("lora",)))
    violations = world.review(world.pinned(engine={"version": "latest"}), facts)
    assert "INVENTED-1" in {item.advisory for item in world.of("advisory-residual", violations)}


def test_a_package_without_a_list_of_versions_is_told_not_refused(world):
    facts = world.facts(data=world.data(published={}))
    (violation,) = world.review(world.pinned(), facts)
    assert (violation.rule, violation.severity) == ("version-published", Enforcement.ADVISORY)
    assert "no published versions of vllm" in violation.message


def test_an_engine_that_is_not_offered_refuses_with_the_reason(world):
    catalogue = world.catalogue(refusals={EngineName.VLLM: "not maintained since 2029"})
    (violation,) = world.review(world.pinned(), None, catalogue)
    assert violation.rule == "engine-offered"
    assert "not maintained since 2029" in violation.message
    assert "vllm" not in violation.remedy
    assert "sglang" in violation.remedy


def test_an_engine_that_the_catalogue_does_not_know_refuses(world):
    manifest = world.pinned(engine={"name": "deepspeed"})
    assert world.refusing(world.review(manifest)) == {"engine-offered"}


def test_what_the_version_can_not_do_refuses_where_it_stands(world):
    lacking = Unsupported("/spec/model/quantization", "vllm 1.0.0 has no nvfp4")
    violations = world.review(world.pinned(model={"quantization": "nvfp4"}), None, world.catalogue(lacking=(lacking,)))
    assert [(item.rule, item.pointer, item.message) for item in violations] == [
        ("supported", lacking.pointer, lacking.message)
    ]


def test_facts_of_another_catalogue_are_told_with_both_digests(world):
    (violation,) = world.review(world.pinned(), world.facts(catalogue_digest="sha256:other"))
    assert (violation.rule, violation.severity) == ("catalogue-same", Enforcement.ADVISORY)
    assert "sha256:other" in violation.message
    assert "sha256:catalogue" in violation.message


def test_facts_that_do_not_name_a_catalogue_are_not_compared(world):
    assert world.review(world.pinned(), world.facts(catalogue_digest="")) == []
