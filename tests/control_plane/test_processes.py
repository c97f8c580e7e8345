"""Engines as processes: started, watched, adopted after a crash, and ended by pid and start time alone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from control_plane.adapters import process_table
from control_plane.adapters.clock import SystemClock
from control_plane.adapters.engine_probe import count_running
from control_plane.adapters.process_records import ProcessRecord, ProcessRecords
from control_plane.adapters.processes import Processes
from control_plane.ports import ClusterError
from control_plane.records import Launch, Replica, ReplicaState
from fleet.engine import CommandLine

FAKE = Path(__file__).with_name("fake_engine.py")
DEADLINE_SECONDS = 20.0


def until(holds: Callable[[], object]) -> object:
    """Wait for a real process."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := holds()):
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.02)
    return found


@pytest.fixture
def control(tmp_path: Path) -> Path:
    folder = tmp_path / "control"
    folder.mkdir()
    return folder


@pytest.fixture
def make(tmp_path: Path, control: Path) -> Iterator[Callable[..., Processes]]:
    """Clusters over one folder; whatever they started ends with the test."""
    folder, made = tmp_path / "engines", []

    def start_cluster(**changes) -> Processes:
        launch = {"vllm": [sys.executable, str(FAKE), str(control), "{version}"], "sglang": ["no-such-program"]}
        made.append(
            Processes(folder=folder, clock=SystemClock(), **({"launch": launch, "stop_seconds": 5.0} | changes))
        )
        return made[-1]

    yield start_cluster
    for record in ProcessRecords(folder).all():
        if record.pid is not None and record.start_ticks is not None:
            process_table.send(record.pid, record.start_ticks, signal.SIGKILL)
    for cluster in made:
        cluster.close()
        for child in cluster._children.values():
            child.wait(timeout=DEADLINE_SECONDS)


def launch(engine: str = "vllm", **files: str) -> Launch:
    def command(port: int) -> CommandLine:
        return CommandLine(("serve", "--port", str(port)), {"FROM_CATALOGUE": "1"}, files)

    return Launch("chat", "0123456789abcdef" * 2, engine, "0.33.0", "sha256:r", command)


def only(cluster: Processes) -> Replica:
    (replica,) = cluster.observe()
    return replica


def in_state(cluster: Processes, state: ReplicaState) -> Callable[[], Replica | None]:
    def look() -> Replica | None:
        replica = only(cluster)
        return replica if replica.state is state else None

    return look


def test_an_engine_starts_answers_and_ends(make):
    cluster = make()
    cluster.start(launch())
    assert only(cluster).state is ReplicaState.STARTING
    healthy = until(in_state(cluster, ReplicaState.HEALTHY))
    assert (healthy.deployment, healthy.revision) == ("chat", "sha256:r")
    cluster.end(healthy.id)
    dead = until(in_state(cluster, ReplicaState.DEAD))
    assert dead.was_asked_to_end
    cluster.forget(dead.id)
    assert list(cluster.observe()) == []


def test_the_command_line_files_and_environment_reach_the_engine(make, tmp_path):
    cluster = make()
    cluster.start(launch(**{"config.yaml": "a: 1"}))
    replica = until(in_state(cluster, ReplicaState.HEALTHY))
    record = ProcessRecords(tmp_path / "engines").all()[0]
    argv = Path(f"/proc/{record.pid}/cmdline").read_bytes().decode().split("\0")
    assert argv[3:6] == ["0.33.0", "--", "serve"]
    environment = Path(f"/proc/{record.pid}/environ").read_bytes().split(b"\0")
    assert b"FROM_CATALOGUE=1" in environment
    assert (Path(f"/proc/{record.pid}/cwd") / "config.yaml").read_text() == "a: 1"
    assert replica.address == f"127.0.0.1:{record.port}"


def test_a_new_control_plane_goes_on_with_the_engines_of_a_dead_one(make):
    first = make()
    first.start(launch())
    before = until(in_state(first, ReplicaState.HEALTHY))
    second = make()
    after = until(in_state(second, ReplicaState.HEALTHY))
    assert (after.id, after.address, after.revision) == (before.id, before.address, before.revision)
    second.end(after.id)
    until(in_state(second, ReplicaState.DEAD))


def test_an_engine_whose_pid_was_not_written_in_time_is_found(make, tmp_path):
    cluster = make()
    cluster.start(launch())
    replica = until(in_state(cluster, ReplicaState.HEALTHY))
    records = ProcessRecords(tmp_path / "engines")
    (record,) = records.all()
    lost = {name: getattr(record, name) for name in ProcessRecord.__dataclass_fields__}
    records.write(ProcessRecord(**lost | {"pid": None, "start_ticks": None}))
    adopted = make()
    assert until(in_state(adopted, ReplicaState.HEALTHY)).id == replica.id
    assert records.all()[0].pid == record.pid


def test_a_pid_that_belongs_to_another_process_by_now_is_left_alone(make, tmp_path):
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        ticks = process_table.start_ticks(bystander.pid)
        record = ProcessRecord("x", "chat", "i", "vllm", "r", 1, 0.0, bystander.pid, ticks - 1)
        ProcessRecords(tmp_path / "engines").write(record)
        cluster = make(stop_seconds=0.001)
        assert only(cluster).state is ReplicaState.DEAD
        cluster.end("x")
        time.sleep(0.01)
        cluster.end("x")
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_an_engine_that_does_not_end_is_killed_in_the_end(make, control):
    (control / "stubborn").touch()
    cluster = make(stop_seconds=0.2)
    cluster.start(launch())
    replica = until(in_state(cluster, ReplicaState.HEALTHY))
    cluster.end(replica.id)
    assert only(cluster).state is ReplicaState.ENDING

    def ended() -> bool:
        cluster.end(replica.id)
        return only(cluster).state is ReplicaState.DEAD

    until(ended)


def test_a_draining_engine_says_how_many_requests_it_holds(make, control):
    (control / "busy").write_text("2")
    cluster = make()
    cluster.start(launch())
    replica = until(in_state(cluster, ReplicaState.HEALTHY))
    cluster.drain(replica.id)
    assert only(cluster).state is ReplicaState.DRAINING
    assert only(cluster).running_requests == 2
    (control / "busy").write_text("0")
    assert only(make()).running_requests == 0


def test_a_sick_engine_gets_no_requests_until_it_is_well(make, control):
    cluster = make()
    cluster.start(launch())
    until(in_state(cluster, ReplicaState.HEALTHY))
    (control / "sick").touch()
    assert "503" in until(in_state(cluster, ReplicaState.STARTING)).detail
    (control / "sick").unlink()
    until(in_state(cluster, ReplicaState.HEALTHY))


def test_an_engine_that_dies_leaves_its_last_words(make, control):
    (control / "broken").touch()
    cluster = make()
    cluster.start(launch())
    dead = until(in_state(cluster, ReplicaState.DEAD))
    assert "ended with 1" in dead.detail
    assert "the weights are not there" in dead.detail
    assert not dead.was_asked_to_end


def test_a_killed_engine_is_seen_as_dead(make, tmp_path):
    cluster = make()
    cluster.start(launch())
    until(in_state(cluster, ReplicaState.HEALTHY))
    os.kill(ProcessRecords(tmp_path / "engines").all()[0].pid, signal.SIGKILL)
    assert "-9" in until(in_state(cluster, ReplicaState.DEAD)).detail


def test_a_program_that_is_not_there_is_named(make, tmp_path):
    cluster = make()
    assert cluster.cannot_start("vllm") is None
    assert "it has: sglang, vllm" in cluster.cannot_start("lmdeploy")
    with pytest.raises(ClusterError, match="no-such-program"):
        cluster.start(launch("sglang"))
    assert ProcessRecords(tmp_path / "engines").all() == []


def test_a_record_that_can_not_be_read_is_left_out(make, tmp_path):
    folder = tmp_path / "engines"
    folder.mkdir()
    (folder / "x.process.json").write_text('{"id": "x"')
    (folder / "y.process.json").write_text("[]")
    assert list(make().observe()) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", None),
        ("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\nvllm:num_requests_waiting 1", 4),
        ('sglang:num_running_reqs{a="b c"} 2.0\nsglang:num_queue_reqs{a="}"} 0.0', 2),
        ("other 5", None),
    ],
)
def test_running_requests_are_read_in_every_dialect(text, count):
    assert count_running(text) == count


def test_the_start_of_this_process_is_known_and_that_of_nobody_is_not():
    ticks = process_table.start_ticks(os.getpid())
    assert process_table.is_alive(os.getpid(), ticks)
    assert not process_table.is_alive(os.getpid(), ticks + 1)
    assert process_table.start_ticks(2**22 + 1) is None
