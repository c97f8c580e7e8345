"""Engines when something breaks around them: a full disk, a lost record, children that outlive their parent."""

import errno
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from control_plane.adapters import process_table
from control_plane.adapters.clock import SystemClock
from control_plane.adapters.process_records import ProcessRecords
from control_plane.adapters.processes import MARK, Processes
from control_plane.ports import ClusterError
from control_plane.records import Launch, ReplicaState
from fleet.engine import CommandLine

FAKE = Path(__file__).with_name("fake_engine.py")
DEADLINE_SECONDS = 20.0


def until(holds):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := holds()):
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)
    return found


def launch() -> Launch:
    def command(port: int) -> CommandLine:
        return CommandLine(("serve", "--port", str(port)), {}, {})

    return Launch("chat", "0123456789abcdef" * 2, "vllm", "0.33.0", "sha256:r", command)


@pytest.fixture
def folder(tmp_path):
    """A folder of engines; every process that was started in it ends with the test."""
    yield tmp_path / "engines"
    for pid, mark in list(process_table.marked(MARK)):
        if process_table.works_in(pid, tmp_path / "engines" / f"{mark}.files"):
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: process_table.start_ticks(pid) is None)


@pytest.fixture
def make(folder, tmp_path):
    (tmp_path / "control").mkdir()
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import runpy, subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "sys.argv = sys.argv[1:]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    made = []

    def start_cluster() -> Processes:
        words = {"vllm": [sys.executable, str(parent), str(FAKE), str(tmp_path / "control")]}
        made.append(Processes(folder=folder, launch=words, clock=SystemClock(), stop_seconds=5.0))
        return made[-1]

    yield start_cluster
    for cluster in made:
        cluster.close()
        for child in cluster._children.values():
            child.kill()
            child.wait()


def state_of(cluster):
    (replica,) = cluster.observe()
    return replica.state


def started(cluster):
    cluster.start(launch())
    until(lambda: state_of(cluster) is ReplicaState.HEALTHY)
    (replica,) = cluster.observe()
    return replica.id


def family(replica_id):
    return [pid for pid, mark in process_table.marked(MARK) if mark == replica_id and process_table.start_ticks(pid)]


def test_the_children_of_a_killed_engine_end_with_it(make, folder):
    cluster = make()
    replica_id = started(cluster)
    until(lambda: len(family(replica_id)) == 2)
    os.kill(ProcessRecords(folder).all()[0].pid, signal.SIGKILL)
    until(lambda: state_of(cluster) is ReplicaState.DEAD)
    cluster.forget(replica_id)
    until(lambda: family(replica_id) == [])


def test_the_engine_is_found_by_its_mark_and_not_one_of_its_children(make, folder):
    cluster = make()
    replica_id = started(cluster)
    until(lambda: len(family(replica_id)) == 2)
    assert process_table.find_by_environment(MARK, replica_id) == ProcessRecords(folder).all()[0].pid


@pytest.mark.parametrize("content", ["", "{", None], ids=["empty", "cut", "removed"])
def test_an_engine_whose_record_was_lost_ends_with_the_next_start(make, folder, content):
    cluster = make()
    replica_id = started(cluster)
    record = folder / f"{replica_id}.process.json"
    pid = json.loads(record.read_text())["pid"]
    record.unlink() if content is None else record.write_text(content)
    assert list(make().observe()) == []
    cluster._children[replica_id].wait(DEADLINE_SECONDS)
    assert process_table.start_ticks(pid) is None


@pytest.fixture
def full_disk(monkeypatch):
    """Records can't be written any more, from the moment it is called."""

    def fill() -> None:
        def write(self, record):
            raise OSError(errno.ENOSPC, "No space left on device", str(self._path(record.id)))

        monkeypatch.setattr(ProcessRecords, "write", write)

    return fill


def test_a_full_disk_keeps_no_engine_from_draining_and_ending(make, full_disk):
    cluster = make()
    replica_id = started(cluster)
    full_disk()
    cluster.drain(replica_id)
    assert state_of(cluster) is ReplicaState.DRAINING
    cluster.end(replica_id)
    until(lambda: state_of(cluster) is ReplicaState.DEAD)
    assert cluster._children[replica_id].wait(DEADLINE_SECONDS) == 0  # by SIGTERM, not by force


def test_a_full_disk_names_the_file_that_an_engine_could_not_be_started_for(make, full_disk, folder):
    cluster = make()
    full_disk()
    with pytest.raises(ClusterError, match=rf"No space left on device \({folder}/chat-01234567-.*process.json\)"):
        cluster.start(launch())
    assert list(cluster.observe()) == []
    assert list(folder.iterdir()) == []
