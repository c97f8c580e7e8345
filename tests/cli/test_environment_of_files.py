"""``review`` and ``pin`` judge a manifest by the environment in whose folder it lies, never by a milder one."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cli.exits import UsageError
from cli.main import app

MANIFEST = (Path(__file__).parents[1] / "data" / "cli" / "chat.yaml").read_text(encoding="utf-8")
POOL = "pools: [{name: l4, instance_type: g6.xlarge, max_nodes: 1}]\n"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return tmp_path / "repo" / "environments"


def manifest(folder: Path, name: str = "chat.yaml") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(MANIFEST)
    return str(folder / name)


@pytest.mark.parametrize("command", ["review", "pin"])
def test_the_folder_says_the_environment(command: str, elsewhere: Path) -> None:
    asked = (command, manifest(elsewhere / "prod"))
    assert json.loads(run(*asked, "-o", "json").stdout)["facts"]["environment"] == "prod"
    assert run(*asked).stdout.rstrip().endswith("environment prod")


@pytest.mark.parametrize("command", ["review", "pin"])
def test_a_file_in_no_environment_is_judged_as_local_and_says_so(command: str, elsewhere: Path) -> None:
    result = run(command, manifest(elsewhere.parent / "drafts"))
    assert result.stdout.rstrip().endswith("environment local")


def test_a_folder_of_pools_is_an_environment_wherever_it_stands(elsewhere: Path) -> None:
    file = manifest(elsewhere.parent / "staging")
    (elsewhere.parent / "staging" / "pools.yaml").write_text(POOL)
    assert json.loads(run("review", file, "-o", "json").stdout)["facts"]["environment"] == "staging"


def test_the_environments_files_are_read_beside_the_manifest(elsewhere: Path) -> None:
    file = manifest(elsewhere / "prod")
    (elsewhere / "prod" / "pools.yaml").write_text("pools: no list\n")
    result = run("review", file)
    assert isinstance(result.exception, UsageError)
    assert f"{elsewhere / 'prod' / 'pools.yaml'}: /pools: expected a list" in str(result.exception)


@pytest.mark.parametrize("command", ["review", "pin"])
def test_another_env_than_the_folders_is_a_usage_error_that_names_both(command: str, elsewhere: Path) -> None:
    result = run(command, manifest(elsewhere / "prod"), "--env", "local")
    assert isinstance(result.exception, UsageError)
    assert "--env is 'local'" in str(result.exception)
    assert "environment 'prod'" in str(result.exception)


@pytest.mark.parametrize("other", ["staging", "../drafts"])
def test_files_of_different_environments_are_not_judged_together(other: str, elsewhere: Path) -> None:
    result = run("review", manifest(elsewhere / "prod"), manifest(elsewhere / other))
    assert isinstance(result.exception, UsageError)
    assert "belongs to environment 'prod'" in str(result.exception)


def test_an_env_whose_folder_is_not_there_is_told_on_stderr(elsewhere: Path) -> None:
    file = manifest(elsewhere.parent / "drafts")
    result = run("review", file, "--env", "prod", "-o", "json")
    assert "environments/prod does not exist here" in result.stderr
    assert json.loads(result.stdout)["facts"]["environment"] == "prod"
    Path("environments/prod").mkdir(parents=True)
    assert "does not exist" not in run("review", file, "--env", "prod").stderr
