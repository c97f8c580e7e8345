"""A process is its id and its start time."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.ending import FLEET_VARIABLE, child_environment, end, marked
from local.identity import ProcessIdentity, identify, is_running, is_same, send, wait_for_end


@pytest.fixture(params=["with descriptors", "without"])
def child(request, monkeypatch):
    """A sleeping child, on a kernel with process descriptors and on one without."""
    if request.param == "without":

        def refuse(_pid, _flags=0):
            raise OSError(errno.ENOSYS, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", refuse)

    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield started
    started.kill()
    started.wait()


@given(st.builds(ProcessIdentity, pid=st.integers(1), start_ticks=st.integers(0), boot_id=st.sampled_from(["", "a"])))
def test_a_process_is_itself_and_no_process_with_another_start(process):
    assert is_same(process, process)
    assert not is_same(process, process.model_copy(update={"start_ticks": process.start_ticks + 1}))
    assert not is_same(process, process.model_copy(update={"pid": process.pid + 1}))


def test_a_process_of_another_boot_is_another_process():
    here = ProcessIdentity(pid=7, start_ticks=9, boot_id="one")
    assert not is_same(here, here.model_copy(update={"boot_id": "two"}))
    assert is_same(here, here.model_copy(update={"boot_id": ""}))


def test_this_process_runs():
    me = identify(os.getpid())
    assert me is not None
    assert is_running(me)


def test_a_reused_id_is_left_alone(child):
    real = identify(child.pid)
    earlier = real.model_copy(update={"start_ticks": real.start_ticks - 1})
    assert not send(earlier, signal.SIGKILL)
    assert end([earlier], grace_seconds=0.0) == ()
    assert child.poll() is None
    assert is_running(real)


def test_ending_is_quick_and_names_nothing_left(child):
    real = identify(child.pid)
    begin = time.monotonic()
    assert end([real], grace_seconds=60.0) == ()
    assert time.monotonic() - begin < 50.0
    assert child.wait() == -signal.SIGTERM


def test_an_ended_child_that_is_not_reaped_does_not_run(child):
    real = identify(child.pid)
    child.kill()
    assert wait_for_end(real, 5.0)
    assert identify(child.pid) is None
    assert not is_running(real)


def test_a_process_that_never_was_has_ended():
    gone = ProcessIdentity(pid=2**22 - 1, start_ticks=1)
    assert wait_for_end(gone, 0.0)
    assert not send(gone, signal.SIGTERM)


def test_marked_processes_are_found_without_a_record(tmp_path):
    argv = [sys.executable, "-c", "import time; time.sleep(600)"]
    ours = subprocess.Popen(argv, env={**os.environ, FLEET_VARIABLE: str(tmp_path)})
    others = subprocess.Popen(argv, env={**os.environ, FLEET_VARIABLE: str(tmp_path / "other")})
    try:
        deadline = time.monotonic() + 5
        while not marked(tmp_path):
            assert time.monotonic() < deadline
        assert [process.pid for process in marked(tmp_path)] == [ours.pid]
    finally:
        for started in (ours, others):
            started.kill()
            started.wait()


def test_settings_of_the_persons_shell_do_not_reach_the_fleet(tmp_path):
    seen = child_environment({"PATH": "/bin", "ENGINEHOUSE_PORT": "1", FLEET_VARIABLE: "/other"}, tmp_path)
    assert seen == {"PATH": "/bin", FLEET_VARIABLE: str(tmp_path)}
