"""``enginehouse plan --fleet``: what it takes, what it refuses, and what people and scripts read."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.exits import UsageError
from cli.main import app

MANIFEST = (Path(__file__).parents[1] / "data" / "cli" / "chat.yaml").read_text(encoding="utf-8")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "environments" / "local"
    found.mkdir(parents=True)
    (found / "pools.yaml").write_text(
        "pools:\n"
        "  - {name: h100, instance_type: p5.48xlarge, max_nodes: 1}\n"
        "  - {name: spare, instance_type: p5en.48xlarge, max_nodes: 8}\n"
    )
    (found / "chat.yaml").write_text(MANIFEST)
    return found


def test_two_manifests_of_one_name_are_a_usage_error_that_names_both_files(folder: Path) -> None:
    (folder / "other.yaml").write_text(MANIFEST)
    result = run("plan", "--fleet", str(folder))
    assert isinstance(result.exception, UsageError)
    assert str(folder / "chat.yaml") in str(result.exception)
    assert str(folder / "other.yaml") in str(result.exception)


@pytest.mark.parametrize(
    ("option", "value"), [("--gpu", "H100"), ("--context", "4096"), ("--tp", "2"), ("--engine", "vllm")]
)
def test_options_of_one_model_are_refused_instead_of_ignored(option: str, value: str, folder: Path) -> None:
    result = run("plan", "--fleet", str(folder), option, value)
    assert isinstance(result.exception, UsageError)
    assert f"leave {option} out" in str(result.exception)


@pytest.mark.parametrize(("offered", "said"), [("3", True), ("1", False)])
def test_gpus_that_are_offered_and_not_used_are_said(offered: str, said: bool) -> None:
    asked = ("plan", "--model", "Qwen/Qwen3-8B", "--gpu", "H100", "--gpus", offered)
    notes = json.loads(run(*asked, "-o", "json").stdout)["notes"]
    assert any("3 GPUs are offered, 1 is used" in note for note in notes) is said
    assert ("3 GPUs are offered, 1 is used" in run(*asked).stdout) is said


def test_a_placed_deployment_says_engine_version_model_and_split(folder: Path) -> None:
    (placed,) = json.loads(run("plan", "--fleet", str(folder), "-o", "json").stdout)["placed"]
    assert (placed["engine"], placed["version"], placed["model_id"]) == ("vllm", "0.33.0", "Qwen/Qwen3-32B")
    assert placed["parallel"] == {"tp": 2, "pp": 1, "ep": 1, "dp": 1, "cp": 1, "gpus": 2}
    table = run("plan", "--fleet", str(folder)).stdout
    assert "vllm 0.33.0" in table
    assert "TP2" in table


def test_an_unused_pool_says_what_it_could_have(folder: Path) -> None:
    assert "0 of 64 possible" in run("plan", "--fleet", str(folder)).stdout


def test_the_cost_of_a_pin_says_of_how_many_replicas_and_which_part_of_a_node_it_is(folder: Path) -> None:
    assert "(1 replica, 0.25 of a node" in run("pin", str(folder / "chat.yaml")).stdout
