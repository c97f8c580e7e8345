"""The environment of a stack: one that the policy does not name is told by the program, before the pack is asked."""

from datetime import date
from pathlib import Path

import pytest

from infra.problem import StackRefused
from infra.program_inputs import other_environments, read_inputs
from tests.infra.stacks import stack

POLICY = "default: {}\nenvironments: {prod: {}}\n"


def read(checkout: Path, name: str):
    return read_inputs(stack(name), environments=checkout / "environments", data_dirs=(), today=date(2030, 1, 1))


@pytest.fixture
def checkout_of_ones_own(tmp_path: Path) -> Path:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("name", "words"), [("mine", "it has: prod)"), ("prd", "did you mean 'prod'?")])
def test_an_unknown_environment_is_one_message_with_file_and_both_places(checkout_of_ones_own, name, words):
    with pytest.raises(StackRefused) as refused:
        read(checkout_of_ones_own, name)
    (problem,) = refused.value.problems
    assert (problem.key, problem.value) == ("environment", name)
    for text in (words, f"'{name}: {{}}' under environments of policies/policy.yaml", "platform.environments"):
        assert text in problem.sentence


def test_an_environment_that_stands_under_environments_alone_is_known(checkout_of_ones_own):
    policy = checkout_of_ones_own / "policies" / "policy.yaml"
    policy.write_text(POLICY.replace("prod: {}", "prod: {}, mine: {}"), encoding="utf-8")
    assert read(checkout_of_ones_own, "mine").catalogue is None


def test_a_policy_that_can_not_be_read_is_one_message(checkout_of_ones_own):
    (checkout_of_ones_own / "policies" / "policy.yaml").write_text("x: 1", encoding="utf-8")
    with pytest.raises(StackRefused) as refused:
        read(checkout_of_ones_own, "prod")
    (problem,) = refused.value.problems
    assert "policy.yaml" in problem.message
    assert problem.remedy == "correct the policy"


def test_the_other_environments_are_those_with_a_file_or_a_folder(tmp_path):
    for name in ("dev", "mine"):
        (tmp_path / f"Pulumi.{name}.yaml").touch()
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "environments" / "prod").mkdir(parents=True)
    (tmp_path / "environments" / "README.md").touch()
    assert other_environments(tmp_path, "mine") == {"dev", "prod"}
