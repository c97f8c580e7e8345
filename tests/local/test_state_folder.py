"""The state folder: private, written whole, held by one supervisor."""

import errno
import os
import random
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local import ports, record
from local.errors import LocalFleetError, StartFailed, StateInUse
from local.identity import ProcessIdentity
from local.layout import SOCKET_PATH_BYTES, Layout, state_home
from local.lock import held

IDENTITIES = st.builds(ProcessIdentity, pid=st.integers(1, 2**22), start_ticks=st.integers(0), boot_id=st.text())
PROCESSES = st.builds(
    record.ProcessRecord,
    name=st.text(),
    identity=IDENTITIES,
    argv=st.lists(st.text()).map(tuple),
    ports=st.lists(st.integers(1, 65535)).map(tuple),
    probes=st.just(()),
    log=st.text(),
    started_at=st.text(),
    restarts=st.integers(0),
)
RECORDS = st.builds(
    record.FleetRecord,
    state=st.sampled_from(["starting", "running", "ending"]),
    supervisor=IDENTITIES,
    urls=st.dictionaries(st.text(), st.text()),
    processes=st.lists(PROCESSES, max_size=3).map(tuple),
)


@given(RECORDS)
def test_a_record_reads_back_as_it_was_written(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("record") / "fleet.json"
    record.write(path, written)
    assert record.read(path) == written
    assert [entry.name for entry in path.parent.iterdir()] == ["fleet.json"]


def test_a_record_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "fleet.json"
    record.write_text(path, "before")

    def full(_descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LocalFleetError, match=r"fleet\.json can't be written: No space left on device"):
        record.write_text(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_broken_record_is_told_and_not_guessed_at(tmp_path):
    path = tmp_path / "fleet.json"
    path.write_text('{"format": 1, "state": "runn')
    with pytest.raises(LocalFleetError, match="can't be read"):
        record.read(path)


def test_no_record_is_no_fleet(tmp_path):
    assert record.read(tmp_path / "fleet.json") is None


def test_a_broken_engine_record_hides_no_other(tmp_path):
    (tmp_path / "a.process.json").write_text('{"pid": 12, "start')
    (tmp_path / "b.process.json").write_text('{"id": "b", "pid": 12, "start_ticks": 5, "port": 9}')
    (tmp_path / "c.process.json").write_text("[]")
    assert [engine.name for engine in record.engines(tmp_path)] == ["b"]


def test_the_lock_has_one_holder_and_is_free_again(tmp_path):
    with held(tmp_path / "lock"), pytest.raises(StateInUse, match=f"process {os.getpid()}"), held(tmp_path / "lock"):
        pass
    with held(tmp_path / "lock"):
        pass


def test_the_state_folder_is_closed_to_others(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o777)
    Layout(folder).create()
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_state_folder_that_is_a_file_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalFleetError, match=r"can't be used: .*--state DIR"):
        Layout(tmp_path / "file").create()
    with pytest.raises(LocalFleetError, match="can't be used"):
        Layout(tmp_path / "file" / "below").create()


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_state_folder_that_may_not_be_written_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(LocalFleetError, match="Permission denied"):
        Layout(tmp_path / "state").create()


@given(st.integers(1, 400))
def test_the_socket_path_fits_however_deep_the_state_lies(length):
    path = Layout(Path("/" + "x" * length)).socket
    assert len(os.fsencode(path)) <= SOCKET_PATH_BYTES + len("/decision.sock")


def test_the_state_home_follows_xdg_only_when_it_is_absolute():
    home = Path("/h")
    assert state_home({"XDG_STATE_HOME": "/x"}, home) == Path("/x/enginehouse")
    assert state_home({"XDG_STATE_HOME": "relative"}, home) == Path("/h/.local/state/enginehouse")
    assert state_home({}, home) == Path("/h/.local/state/enginehouse")


@given(st.integers(0, 2**32), st.integers(1, 8))
def test_picked_ports_are_free_different_and_below_the_ephemeral_range(seed, count):
    picked = ports.pick(count, chance=random.Random(seed))  # noqa: S311
    assert len(set(picked)) == count
    assert all(ports.FIRST_PORT <= port < ports.LAST_PORT for port in picked)


def test_a_port_in_use_is_not_picked_and_named_when_wished():
    with socket.socket() as taken:
        taken.bind((ports.HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not ports.is_free(port)
        assert ports.is_listening(port)
        with pytest.raises(LocalFleetError, match=f"port {port} on"):
            ports.pick(2, chance=random.Random(1), wished=[port])  # noqa: S311


@pytest.mark.parametrize(("free", "is_told"), [(None, False), (10**9, False), (4096, True)])
def test_a_failed_start_on_a_full_disk_says_so(free, is_told):
    error = StartFailed("envoy", "it ended", log=Path("/x/envoy.log"), last_lines="", free_bytes=free)
    assert ("has only 4096 bytes free" in str(error)) is is_told
