"""Stacks that the pack can't work with: one sentence and no traceback; a malformed stack is the program's to refuse."""

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.knowledge import NoEnvironment, StackFacts, ground_of, stack_facts
from sources import policy_file
from sources.errors import SourceError
from tests.infra.changed_places import with_value_at
from tests.infra.stacks import VARIANTS
from tests.policies.pack_server import PACK, PackFailed, pack_server

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
PLACES = (
    ("weights",), ("weights", "kind"), ("weights", "copy_image"), ("pools",), ("pools", 0), ("pools", 0, "name"),
    ("pools", 0, "image"), ("pools", 0, "image", "driver"), ("pools", 0, "reservation_id"), ("pools", 0, "zone"),
    ("pools", 0, "zones"), ("pools", 0, "ends_on"), ("network",), ("version",),
)  # fmt: skip


def told(stack: object, name: str = "organization/enginehouse/prod", **more: object) -> dict[str, str]:
    config = {"enginehouse:stack": json.dumps(stack), **more}
    return {"PULUMI_STACK": name, "PULUMI_CONFIG": json.dumps(config)}


@given(variant=st.sampled_from(sorted(VARIANTS)), path=st.sampled_from(PLACES), value=ANYTHING)
def test_whatever_stands_at_a_place_the_pack_reads_the_stack_without_a_fault(variant, path, value):
    stack = with_value_at(VARIANTS[variant].model_dump(mode="json", exclude_none=True), path, value)
    found = stack_facts(told(stack))
    assert isinstance(found, StackFacts)
    assert all(
        isinstance(text, str) for pair in (*found.drivers.items(), *found.reservation_zones.items()) for text in pair
    )


@given(stack=ANYTHING, data=ANYTHING)
def test_a_stack_that_is_no_mapping_is_judged_as_the_environment_of_its_name(stack, data):
    stated = stack.get("environment") if isinstance(stack, dict) else None
    if not stated:
        found = stack_facts(told(stack, **{"enginehouse:data": json.dumps(data)}))
        assert found.environment == "prod"
        assert all(isinstance(folder, str) for folder in found.data)


@given(text=st.text(max_size=20))
def test_a_configuration_that_is_no_json_is_read_as_none(text):
    assert stack_facts({"PULUMI_STACK": "prod", "PULUMI_CONFIG": text}).environment == "prod"


@given(value=st.one_of(st.integers(), st.lists(st.text(max_size=3)), st.just("A b"), st.booleans()))
def test_an_environment_that_is_no_name_is_one_sentence(value):
    with pytest.raises(NoEnvironment, match=r"which is no name; give environment in enginehouse:stack"):
        stack_facts(told({"environment": value}))


def ground(policy: Path, name: str):
    return ground_of(told({}, name), root=policy, policy=policy, today=lambda: date(2030, 1, 1))


def test_an_environment_of_ones_own_needs_to_stand_in_one_place_only(tmp_path):
    text = (PACK / "policy.yaml").read_text(encoding="utf-8")
    policy = tmp_path / "policy.yaml"
    policy.write_text(text, encoding="utf-8")
    with pytest.raises(NoEnvironment) as refused:
        ground(policy, "mine")
    for words in ("policies/policy.yaml", "'mine: {}' under environments", "platform.environments"):
        assert words in str(refused.value)
    policy.write_text(
        text.replace("environments:\n  local:", "environments:\n  mine: {}\n  local:", 1), encoding="utf-8"
    )
    assert ground(policy, "mine").platform == policy_file.read(policy).platform.default
    with pytest.raises(NoEnvironment, match="did you mean 'mine'"):
        ground(policy, "minee")


def test_an_environment_of_the_platform_alone_is_told_with_file_and_both_places(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("environments: {prod: {}}\nplatform: {environments: {prdo: {}}}\n", encoding="utf-8")
    with pytest.raises(SourceError) as refused:
        ground(policy, "prod")
    for words in (str(policy), "/platform/environments/prdo", "did you mean 'prod'", "under environments of"):
        assert words in str(refused.value)


@pytest.mark.parametrize(
    ("name", "stack", "words"),
    [
        ("mine", None, "'mine: {}' under environments of policies/policy.yaml"),
        ("prod", {"environment": "prd"}, "did you mean 'prod'"),
        ("prod", {"environment": ["prod"]}, "a list, which is no name"),
    ],
)
def test_the_pack_ends_with_one_sentence_and_no_traceback(name, stack, words):
    with pytest.raises(PackFailed) as refused, pack_server(name, stack_config=stack):
        pass
    text = str(refused.value)
    assert text.startswith("the policy pack can't judge this stack: ")
    assert text.count("\n") == 1
    assert words in text


def test_the_pack_serves_beside_a_malformed_stack():
    stack = {"environment": "prod", "weights": "x", "pools": [{"image": "x", "reservation_id": []}, 3]}
    with pack_server("prod", stack_config=stack) as server:
        assert server.info().name == "enginehouse"
