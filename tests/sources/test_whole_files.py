"""Writing: the old file or the new one, never a half."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.errors import SourceError
from sources.whole_file import write_whole


@given(texts=st.lists(st.binary(max_size=50), min_size=1, max_size=4))
def test_the_last_written_data_stands_alone(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    for data in texts:
        write_whole(folder / "a", data)
    assert (folder / "a").read_bytes() == texts[-1]
    assert os.listdir(folder) == ["a"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    path = tmp_path / "a"
    write_whole(path, b"old")
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full on this machine")
    (tmp_path / f".a.{os.getpid()}.partial").symlink_to("/dev/full")
    with pytest.raises(SourceError, match=r"can't be written \(No space left on device\); the old file is unchanged"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(SourceError, match="No such file or directory"):
        write_whole(tmp_path / "nowhere" / "a", b"x")
