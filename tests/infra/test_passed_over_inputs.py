"""What the program would pass over in silence stops it: manifests that nobody reads, folders that are none."""

import json

import pytest
from pulumi.runtime.config import set_all_config

from infra import program
from infra.problem import StackRefused
from tests.infra.manifest_folders import facts, judge, put, written


@pytest.fixture
def problems(tmp_path_factory):
    known = facts(tmp_path_factory.mktemp("data"))
    return lambda folder: [item.sentence for item in judge(folder, known).problems]


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        ("chat.pinned.YAML", "call it chat.pinned.yaml"),
        ("chat.pinned.json", "write it as chat.pinned.yaml"),
        ("more/chat.pinned.yaml", "manifests in folders are not read"),
        ("more/deep/chat.pinned.YML", "manifests in folders are not read"),
        ("chat.json", "write it as chat.yaml"),
    ],
)
def test_a_manifest_that_would_not_be_read_is_a_problem(tmp_path, problems, moved, said):
    put(tmp_path, written("chat"))
    (tmp_path / "chat.yaml").unlink()
    before = problems(tmp_path)
    place = tmp_path / moved
    place.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "chat.pinned.yaml").rename(place)
    found = problems(tmp_path)
    assert before == []
    assert len(found) == 1
    assert said in found[0]


def test_what_an_environment_holds_beside_manifests_is_none(tmp_path, problems):
    put(tmp_path, written("chat"))
    for place in ("waivers/a.yaml", "models/a--b.json", ".drafts/a.yaml", "README.md", "dashboards/one.json"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("{}", encoding="utf-8")
    assert problems(tmp_path) == []


@pytest.mark.parametrize("stated", ['"data"', "data", "[1]", '[""]', "{}", "[" * 100_000, '[["data"]]'])
def test_folders_of_advisories_are_a_list_of_texts(stated):
    set_all_config({"enginehouse:data": stated})
    with pytest.raises(StackRefused, match="enginehouse:data: folders of advisories are a list of texts"):
        program._data_dirs()


def test_folders_of_advisories_stand_below_the_checkout():
    set_all_config({"enginehouse:data": json.dumps(["data", "more"])})
    assert program._data_dirs() == [program.ROOT / "data", program.ROOT / "more"]
    set_all_config({})
    assert program._data_dirs() == []
