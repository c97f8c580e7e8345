"""What runs is adopted: the file says what the stack's outputs say, and loses no comment."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.adopted import main
from infra.adopted_file import HEAD, changes, rewritten
from sources.environment import read_adopted

OLD, NEW = "a" * 32, "b" * 32
COMMENTED = f"""\
# reviewed by the team
adopted:
  - name: chat  # the first one
    identity: {OLD}
  # why it stays
  - {{name: code, identity: {OLD}}}
"""
NAMES = st.text("abc", min_size=1, max_size=3)
IDENTITIES = st.text("0123456789abcdef", min_size=32, max_size=32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "environments" / "prod"
    place.mkdir(parents=True)
    return place


def run(folder: Path, identities: object, *more: str) -> int:
    outputs = folder.parent.parent / "outputs.json"
    outputs.write_text(json.dumps({"identities": identities, "vpc_id": "vpc-1"}), encoding="utf-8")
    return main([folder.name, "--environments", str(folder.parent), "--outputs", str(outputs), *more])


def written(folder: Path, text: str) -> Path:
    path = folder / "adopted.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@settings(max_examples=25)
@given(before=st.lists(st.tuples(NAMES, IDENTITIES)), after=st.dictionaries(NAMES, IDENTITIES))
def test_what_was_written_reads_back_as_what_runs_and_is_written_once(tmp_path_factory, before, after):
    path = tmp_path_factory.mktemp("adopted") / "adopted.yaml"
    entries = [{"name": name, "identity": identity} for name, identity in before]
    text = rewritten(json.dumps({"adopted": entries}), after)
    path.write_text(text, encoding="utf-8")
    found = read_adopted(path)
    assert sorted((item.name, item.identity) for item in found) == sorted(after.items())
    assert list(changes(found, after)) == []
    assert rewritten(text, after) == text


def test_comments_and_the_order_of_what_stays_are_kept(folder):
    path = written(folder, COMMENTED)
    assert run(folder, {"code": NEW, "chat": OLD}, "--write") == 0
    assert path.read_text(encoding="utf-8") == COMMENTED.replace(f"code, identity: {OLD}", f"code, identity: {NEW}")


def test_a_new_deployment_is_added_as_the_others_are_written(folder):
    path = written(folder, COMMENTED)
    assert run(folder, {"chat": OLD, "code": OLD, "draw": NEW}, "--write") == 0
    assert path.read_text(encoding="utf-8") == f"{COMMENTED}  - name: draw\n    identity: {NEW}\n"


def test_the_first_file_says_where_it_comes_from(folder):
    assert run(folder, {"chat": NEW}, "--write") == 0
    assert (folder / "adopted.yaml").read_text(encoding="utf-8") == (
        f"{HEAD}adopted:\n  - name: chat\n    identity: {NEW}\n"
    )


def test_without_write_it_says_what_differs_and_touches_nothing(folder, capsys):
    path = written(folder, COMMENTED)
    assert run(folder, {"chat": NEW, "draw": NEW}) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in told] == ["chat", "code", "draw"]
    assert told[0] == f"chat: {OLD} -> {NEW}"
    assert "no such deployment" in told[1]
    assert path.read_text(encoding="utf-8") == COMMENTED


def test_a_file_that_says_what_runs_is_left_alone(folder, capsys):
    path = written(folder, COMMENTED)
    before = path.stat().st_mtime_ns
    assert run(folder, {"chat": OLD, "code": OLD}, "--write") == 0
    assert capsys.readouterr().out == ""
    assert path.stat().st_mtime_ns == before


def test_a_stack_without_deployments_adopts_none(folder):
    path = written(folder, COMMENTED)
    assert run(folder, {}, "--write") == 0
    assert read_adopted(path) == ()


@pytest.mark.parametrize("identities", [None, [], {"chat": "short"}, {"chat": 3}])
def test_outputs_without_identities_are_told_with_the_command_that_writes_them(folder, identities, capsys):
    assert run(folder, identities, "--write") == 2
    assert "pulumi stack output --json" in capsys.readouterr().err
    assert not (folder / "adopted.yaml").exists()


@pytest.mark.parametrize("text", ["adopted: {", "adopted: [{name: chat}]", "adapted: []"])
def test_a_file_that_can_t_be_read_is_told_and_stays(folder, text, capsys):
    path = written(folder, text)
    assert run(folder, {"chat": NEW}, "--write") == 2
    assert str(path) in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == text


def test_an_environment_that_is_not_there_and_outputs_that_are_none(folder, tmp_path, capsys):
    assert run(folder.parent / "prd", {"chat": NEW}) == 2
    assert "no such folder" in capsys.readouterr().err
    assert main(["prod", "--environments", str(folder.parent), "--outputs", str(tmp_path / "none")]) == 2
    (tmp_path / "outputs.json").write_text("{")
    assert main(["prod", "--environments", str(folder.parent), "--outputs", str(tmp_path / "outputs.json")]) == 2
    assert "it is no JSON" in capsys.readouterr().err
