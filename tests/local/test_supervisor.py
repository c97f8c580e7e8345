"""The supervisor's laws, with small real processes."""

import os
import signal
import threading
from pathlib import Path

import pytest

from local import record
from local.errors import LocalFleetError, StartFailed
from local.identity import is_running
from local.ports import is_listening
from local.stop_request import StopRequest
from local.supervisor import Supervisor


@pytest.fixture
def stop():
    with StopRequest() as request:
        yield request


@pytest.fixture
def supervise(layout, environment, stop):
    """Makes supervisors that are ended afterwards."""
    made = []

    def make(*rooms, said=None):
        said = [] if said is None else said
        supervisor = Supervisor(
            rooms,
            layout,
            urls={"control_plane": "http://127.0.0.1:1"},
            environment=environment,
            own_pid=os.getpid(),
            stop=stop,
            tell=said.append,
        )
        made.append(supervisor)
        return supervisor

    yield make
    for supervisor in made:
        supervisor.end()


def starts(journal):
    return [line.split()[1] for line in journal() if line.startswith("start")]


def ends(journal):
    return [line.split()[1] for line in journal() if line.startswith("end")]


def test_rooms_start_in_order_each_after_the_one_before_is_ready_and_end_in_reverse(supervise, fake_room, journal):
    rooms = [fake_room(name) for name in ("first", "second", "third")]
    supervisor = supervise(*rooms)
    assert supervisor.start()
    assert starts(journal) == ["first", "second", "third"]
    assert all(is_listening(room.ports[0]) for room in rooms)
    assert supervisor.end() == ()
    assert ends(journal) == ["third", "second", "first"]
    assert not any(is_listening(room.ports[0]) for room in rooms)


def test_the_record_names_every_process_and_goes_when_nothing_is_left(supervise, fake_room, layout):
    supervisor = supervise(fake_room("only"))
    supervisor.start()
    found = record.read(layout.record)
    assert found is not None
    assert found.state == "running"
    assert [process.name for process in found.processes] == ["only"]
    assert is_running(found.processes[0].identity)
    assert layout.record.stat().st_mode & 0o077 == 0
    supervisor.end()
    assert record.read(layout.record) is None


def test_a_killed_room_is_started_again_and_told(supervise, fake_room, eventually):
    said = []
    supervisor = supervise(fake_room("first"), fake_room("second"), said=said)
    supervisor.start()
    supervisor.watch_in_background()
    victim = supervisor.record.processes[1].identity
    os.kill(victim.pid, signal.SIGKILL)
    eventually(lambda: any("runs again" in line for line in said))
    assert "second" in said[0]
    assert "signal 9" in said[0]
    assert supervisor.record.processes[1].restarts == 1
    assert not is_running(victim)
    assert supervisor.record.processes[0].restarts == 0


def test_the_wait_before_a_new_start_grows_while_a_room_keeps_failing(supervise, fake_room, eventually, layout):
    said = []
    room = fake_room("moody")
    supervisor = supervise(room, said=said)
    supervisor.start()
    # From now on its ready file can't appear, as on a full disk: every new start dies.
    room.ready_file.parent.rename(layout.state / "elsewhere")
    supervisor.watch_in_background()
    os.kill(supervisor.record.processes[0].identity.pid, signal.SIGKILL)
    eventually(lambda: len(said) >= 3)
    assert [line.split(" again in ")[1].split(" s.")[0] for line in said[:3]] == ["0.2", "0.4", "0.8"]


def test_a_room_that_dies_at_once_is_told_with_the_end_of_its_log(supervise, fake_room):
    supervisor = supervise(fake_room("doomed", "dies"))
    with pytest.raises(StartFailed, match="doomed did not start: it ended with exit code 1") as caught:
        supervisor.start()
    assert "the disk says no" in str(caught.value)
    assert str(caught.value.log) in str(caught.value)


def test_a_room_that_never_gets_ready_has_a_deadline(supervise, fake_room):
    supervisor = supervise(fake_room("slow", "never-ready", ready_seconds=0.5))
    with pytest.raises(StartFailed, match=r"not ready after 0\.5 s: it has not said that it is ready"):
        supervisor.start()


def test_the_rooms_started_before_a_failure_are_ended(supervise, fake_room, layout):
    good = fake_room("good")
    supervisor = supervise(good, fake_room("doomed", "dies"))
    with pytest.raises(StartFailed):
        supervisor.start()
    assert supervisor.end() == ()
    assert not is_listening(good.ports[0])
    assert not layout.record.exists()


def test_a_missing_program_is_named(supervise, fake_room):
    with pytest.raises(LocalFleetError, match="the program /nowhere/envoy is missing"):
        supervise(fake_room("envoy", argv=("/nowhere/envoy",))).start()


def test_a_configuration_that_does_not_validate_starts_nothing(supervise, fake_room, journal):
    room = fake_room("proxy", validate=("sh", "-c", "echo line 3 is wrong; exit 1"))
    with pytest.raises(StartFailed, match="configuration is not valid") as caught:
        supervise(room).start()
    assert "line 3 is wrong" in str(caught.value)
    assert journal() == []


def test_a_room_that_ignores_term_is_killed_after_its_grace(supervise, fake_room, eventually):
    room = fake_room("stubborn", "stubborn", grace_seconds=0.2)
    supervisor = supervise(room)
    supervisor.start()
    assert supervisor.end() == ()
    assert not is_listening(room.ports[0])


def test_asking_to_end_while_a_room_starts_ends_what_was_started(supervise, fake_room, stop, journal, eventually):
    good = fake_room("good")
    supervisor = supervise(good, fake_room("slow", "never-ready"), fake_room("never"))
    answers = []
    starting = threading.Thread(target=lambda: answers.append(supervisor.start()))
    starting.start()
    eventually(lambda: starts(journal) == ["good", "slow"])
    stop.set()
    starting.join(timeout=5)
    assert answers == [False]
    assert supervisor.end() == ()
    assert starts(journal) == ["good", "slow"]
    assert not is_listening(good.ports[0])


def test_a_terminals_interrupt_does_not_reach_the_rooms(supervise, fake_room):
    supervisor = supervise(fake_room("only"))
    supervisor.start()
    pid = supervisor.record.processes[0].identity.pid
    assert os.getsid(pid) == pid
    assert os.getpgid(pid) != os.getpgid(0)


def test_a_room_does_not_see_the_variables_that_it_must_not(supervise, fake_room, environment):
    environment["UNWANTED"] = "x"
    room = fake_room("room", unset=("UNWANTED",))
    supervisor = supervise(room)
    assert supervisor.start()
    (process,) = supervisor.record.processes
    assert b"UNWANTED=x" not in Path(f"/proc/{process.identity.pid}/environ").read_bytes()


def test_a_room_starts_again_though_the_record_can_not_be_written(
    supervise, fake_room, journal, eventually, monkeypatch
):
    said = []
    supervisor = supervise(fake_room("only"), said=said)
    supervisor.start()

    def full(path, _record):
        raise LocalFleetError(f"{path} can't be written: No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr("local.supervisor.write", full)
        supervisor.watch_in_background()
        os.kill(supervisor.record.processes[0].identity.pid, signal.SIGKILL)
        eventually(lambda: any("runs again" in line for line in said))
        assert starts(journal) == ["only", "only"]
        assert sum("No space left" in line for line in said) == 1
