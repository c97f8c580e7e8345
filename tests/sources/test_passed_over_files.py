"""What somebody wrote down for an environment is read, or refused with the name it should have; never passed over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources import environment
from sources.errors import SourceError

LISTS = ("images", "adopted", "pools", "prices")


@given(
    name=st.sampled_from(LISTS),
    ending=st.sampled_from([".yaml", ".yml", ".YAML", ".Yml", ".json", ""]),
    is_loud=st.booleans(),
)
def test_a_list_is_read_or_its_name_is_told(tmp_path_factory, name, ending, is_loud):
    folder = tmp_path_factory.mktemp("environment")
    path = folder / f"{name.upper() if is_loud else name}{ending}"
    path.write_text(f"{name}: []\n", encoding="utf-8")
    if path.name == f"{name}.yaml":
        assert environment.read(folder) == environment.Environment()
    else:
        with pytest.raises(SourceError, match=f"call it {name}.yaml"):
            environment.read(folder)


@pytest.mark.parametrize("name", ["waivers.yaml", "triage.yml", "waivers", "Waivers.json", "models.json"])
def test_entries_have_a_folder_of_their_own(tmp_path, name):
    (tmp_path / name).write_text("[]", encoding="utf-8")
    with pytest.raises(SourceError, match="stand one a file in the folder"):
        environment.read(tmp_path)


@pytest.mark.parametrize("place", ["waivers/one.YAML", "waivers/one.json", "triage/old/one.yaml"])
def test_an_entry_that_would_not_be_read_is_refused(tmp_path, place):
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(SourceError, match="it is not read; put it into"):
        environment.read(tmp_path)


@pytest.mark.parametrize("place", ["pools.yaml", "waivers/one.yaml", "chat.yaml"])
def test_a_link_that_leads_nowhere_is_refused(tmp_path, place):
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("gone.yaml")
    with pytest.raises(SourceError, match="leads nowhere"):
        environment.read(tmp_path)


def test_an_environment_is_a_folder(tmp_path):
    path = tmp_path / "prod"
    path.write_text("", encoding="utf-8")
    with pytest.raises(SourceError, match="expected a folder, found a file"):
        environment.read(path)


def test_pages_and_hidden_files_beside_are_nobody_s_business(tmp_path):
    (tmp_path / "waivers").mkdir()
    for name in ("README.md", ".pools.yml", "waivers/README.md", "waivers/.one.json", "chat.yaml"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert environment.read(tmp_path) == environment.Environment()
    assert environment.read(tmp_path / "nowhere") == environment.Environment()
