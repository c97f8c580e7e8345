"""The short folder of a deep fleet's socket: there while the fleet runs, and nothing of it afterwards."""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from local import record, socket_folder
from local.down import down
from local.ending import end, marked
from local.errors import LocalFleetError
from local.identity import identify_child
from local.layout import SOCKET_FOLDER, Layout
from local.lock import held

FAKE_ROOMS = Path(__file__).with_name("fake_rooms")


@pytest.fixture
def elsewhere(monkeypatch, tmp_path_factory):
    """A folder for temporary things with a short path, as the system's own is; pytest keeps to its own."""
    tmp_path_factory.getbasetemp()
    with tempfile.TemporaryDirectory(prefix="short-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.fixture
def deep(tmp_path):
    """A fleet whose own folder is too deep for a socket."""
    layout = Layout(tmp_path / ("d" * 100))
    yield layout
    end(marked(layout.state), grace_seconds=0.0)


def left(folder: Path, name: str = "0123456789abcdef") -> Path:
    """A folder of this user, as a fleet leaves it."""
    made = folder / f"{SOCKET_FOLDER}-{os.getuid()}-{name}"
    made.mkdir()
    return made


def owned_by_a_dead_one(folder: Path) -> Path:
    child = subprocess.Popen([sys.executable, "-c", ""])
    identity = identify_child(child.pid)
    child.wait()
    made = left(folder)
    (made / socket_folder.OWNER).write_text(identity.model_dump_json())
    return made


def test_a_deep_fleet_has_a_private_folder_while_it_runs_and_nothing_afterwards(elsewhere, deep):
    deep.create()
    assert list(elsewhere.iterdir()) == []
    with held(deep.lock), socket_folder.made(deep):
        assert deep.socket.parent.parent == elsewhere
        assert deep.socket.parent.stat().st_mode & 0o777 == 0o700
        deep.socket.touch()
        socket_folder.sweep()
        assert deep.socket.exists()
    assert list(elsewhere.iterdir()) == []


def test_a_fleet_with_room_for_its_socket_makes_no_folder_elsewhere(elsewhere):
    layout = Layout(elsewhere / "s")
    layout.create()
    with socket_folder.made(layout):
        assert [item.name for item in elsewhere.iterdir()] == ["s"]
    assert layout.gateway.is_dir()


def test_the_next_start_takes_away_what_dead_fleets_left(elsewhere, deep):
    owned_by_a_dead_one(elsewhere)
    left(elsewhere, "f" * 16)
    silent = left(elsewhere, "e" * 16)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(silent / "decision.sock"))
    with socket_folder.made(deep):
        assert list(elsewhere.iterdir()) == [deep.socket.parent]
    assert list(elsewhere.iterdir()) == []


def test_what_is_not_a_dead_fleets_folder_stays(elsewhere):
    others = [left(elsewhere, "x" * 16), elsewhere / f"{SOCKET_FOLDER}-{os.getuid() + 1}-{'a' * 16}"]
    others[1].mkdir()
    link = elsewhere / f"{SOCKET_FOLDER}-{os.getuid()}-{'b' * 16}"
    link.symlink_to(others[1])
    alive = left(elsewhere, "c" * 16)
    (alive / socket_folder.OWNER).write_text(identify_child(os.getpid()).model_dump_json())
    answered = owned_by_a_dead_one(elsewhere)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(answered / "decision.sock"))
        listener.listen()
        socket_folder.sweep()
        assert {*elsewhere.iterdir()} == {*others, link, alive, answered}


def test_a_folder_that_is_somebody_elses_is_told(elsewhere, deep):
    deep.socket.parent.symlink_to(elsewhere)
    with pytest.raises(LocalFleetError, match="give a shorter folder with --state DIR"), socket_folder.made(deep):
        pass


def start(layout: Layout, elsewhere: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(FAKE_ROOMS), "TMPDIR": str(elsewhere)}
    argv = [sys.executable, "-m", "local", str(layout.state), "{}"]
    return subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("is_killed", [True, False], ids=["supervisor killed", "supervisor alive"])
def test_down_leaves_nothing_of_a_deep_fleet(elsewhere, deep, eventually, is_killed):
    supervisor = start(deep, elsewhere)
    try:
        eventually(lambda: (found := record.read(deep.record)) is not None and found.state == "running")
        assert deep.socket.exists()
        if is_killed:
            supervisor.kill()
            supervisor.wait()
        assert down(deep)[1] == ()
        assert supervisor.wait(timeout=30) is not None
    finally:
        supervisor.kill()
        supervisor.communicate()
    assert [item.name for item in elsewhere.iterdir() if item.name.startswith(SOCKET_FOLDER)] == []
