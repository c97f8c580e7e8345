"""A whole fleet of fake rooms and a real Envoy: it starts, survives, and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from local import record
from local.down import down, running
from local.ending import end, marked
from local.layout import Layout
from local.ports import is_listening
from local.status import status

FAKE_ROOMS = Path(__file__).with_name("fake_rooms")


@pytest.fixture
def fleet_layout(tmp_path):
    layout = Layout(tmp_path / "state")
    yield layout
    end(marked(layout.state), grace_seconds=0.0)


@pytest.fixture
def up(fleet_layout):
    """Starts the supervisor as a process of its own."""
    started = []

    def start(wishes="{}", **words):
        environment = {**os.environ, "PYTHONPATH": str(FAKE_ROOMS), **words}
        argv = [sys.executable, "-m", "local", str(fleet_layout.state), wishes]
        child = subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE, text=True)
        started.append(child)
        return child

    yield start
    for child in started:
        if child.poll() is None:
            child.kill()
        child.communicate()


def is_up(layout):
    found = record.read(layout.record)
    return found is not None and found.state == "running"


def ports_of(layout):
    found = record.read(layout.record)
    engines = [engine.port for engine in record.engines(layout.engines)]
    return [port for process in found.processes for port in process.ports if is_listening(port)] + engines


def assert_nothing_left(layout, ports):
    assert marked(layout.state) == ()
    assert [port for port in ports if is_listening(port)] == []
    assert not layout.record.exists()


def test_kill_9_of_the_supervisor_then_down_leaves_no_process_and_no_port(up, fleet_layout, eventually):
    supervisor = up()
    eventually(lambda: is_up(fleet_layout))
    ports = ports_of(fleet_layout)
    assert len(ports) >= 3
    supervisor.kill()
    supervisor.wait()
    assert len(running(fleet_layout, record.read(fleet_layout.record))) == 4
    lines = {line.process: line for line in status(fleet_layout).processes}
    assert not lines["supervisor"].healthy
    assert lines["envoy"].healthy
    found, left = down(fleet_layout)
    assert (found, left) == (4, ())
    assert_nothing_left(fleet_layout, ports)
    assert down(fleet_layout) == (0, ())


def test_down_asks_a_living_supervisor_to_end_its_fleet(up, fleet_layout, eventually):
    supervisor = up()
    eventually(lambda: is_up(fleet_layout))
    assert status(fleet_layout).is_healthy
    assert {line.process for line in status(fleet_layout).processes} == {
        "supervisor",
        "control-plane",
        "gateway",
        "envoy",
        "chat-1",
    }
    ports = ports_of(fleet_layout)
    down(fleet_layout)
    assert supervisor.wait(timeout=5) == 0
    assert_nothing_left(fleet_layout, ports)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_of_starting_leaves_nothing(up, fleet_layout, eventually, signum):
    supervisor = up(FAKE_GATEWAY="never-ready")
    journal = fleet_layout.state / "journal"
    eventually(lambda: journal.exists() and "start gateway" in journal.read_text())
    ports = ports_of(fleet_layout)
    supervisor.send_signal(signum)
    assert supervisor.wait(timeout=15) == 128 + signum
    assert_nothing_left(fleet_layout, ports)


def test_a_signal_to_a_running_fleet_ends_it_with_0(up, fleet_layout, eventually):
    supervisor = up()
    eventually(lambda: is_up(fleet_layout))
    ports = ports_of(fleet_layout)
    supervisor.send_signal(signal.SIGINT)
    assert supervisor.wait(timeout=15) == 0
    assert_nothing_left(fleet_layout, ports)


def test_a_second_supervisor_is_told_who_has_the_folder(up, fleet_layout, eventually):
    first = up()
    eventually(lambda: is_up(fleet_layout))
    second = up()
    assert second.wait(timeout=10) == 1
    assert f"is in use by process {first.pid}" in second.stderr.read()
    assert is_up(fleet_layout)


def test_a_new_start_ends_what_a_killed_supervisor_left_and_keeps_the_ports(up, fleet_layout, eventually):
    first = up()
    eventually(lambda: is_up(fleet_layout))
    before = record.read(fleet_layout.record)
    first.kill()
    first.wait()
    up()

    def is_another() -> bool:
        found = record.read(fleet_layout.record)
        return found is not None and found.state == "running" and found.supervisor != before.supervisor

    eventually(is_another)
    after = record.read(fleet_layout.record)
    assert after.urls == before.urls
    assert {process.identity.pid for process in before.processes}.isdisjoint(
        process.identity.pid for process in after.processes
    )


def test_a_control_plane_that_dies_at_once_is_told_with_its_last_lines(up, fleet_layout):
    supervisor = up(FAKE_CONTROL_PLANE="dies")
    assert supervisor.wait(timeout=15) == 1
    said = supervisor.stderr.read()
    assert "control-plane did not start: it ended with exit code 1" in said
    assert "address already in use" in said
    assert "control-plane.log" in said
    assert_nothing_left(fleet_layout, [])


def test_a_wrong_envoy_configuration_is_told_in_envoys_words(up, fleet_layout):
    supervisor = up(FAKE_GATEWAY="bad-configuration")
    assert supervisor.wait(timeout=15) == 1
    said = supervisor.stderr.read()
    assert "envoy did not start: its configuration is not valid" in said
    assert "adress" in said
    assert_nothing_left(fleet_layout, [])


def test_tokens_are_readable_by_their_owner_alone_and_made_once(up, fleet_layout, eventually):
    for _ in range(2):
        supervisor = up()
        eventually(lambda: is_up(fleet_layout))
        down(fleet_layout)
        supervisor.wait(timeout=5)
    assert fleet_layout.token("gateway").stat().st_mode & 0o777 == 0o600
    assert fleet_layout.state.stat().st_mode & 0o777 == 0o700
    journal = (fleet_layout.state / "journal").read_text().splitlines()
    assert sorted(line for line in journal if line.startswith("token")) == ["token gateway", "token operator"]


@pytest.mark.parametrize("content", [b"", b"\xe6\x00garbage", b"two words"])
def test_a_stored_token_that_is_none_is_made_anew(up, fleet_layout, eventually, content):
    fleet_layout.create()
    fleet_layout.database.write_text("knows it")
    fleet_layout.token("gateway").write_bytes(content)
    up()
    eventually(lambda: is_up(fleet_layout))
    assert fleet_layout.token("gateway").read_text() == "secret-of-gateway\n"
    assert down(fleet_layout)[1] == ()


@pytest.mark.parametrize("is_emptied", [True, False], ids=["emptied", "removed"])
def test_tokens_that_no_database_knows_any_more_are_made_anew(up, fleet_layout, eventually, is_emptied):
    fleet_layout.create()
    if is_emptied:
        fleet_layout.database.touch()
    for name in ("gateway", "operator", "admin.given"):
        fleet_layout.token(name).write_text("of-an-old-database")
    up()
    eventually(lambda: is_up(fleet_layout))
    assert fleet_layout.token("gateway").read_text() == "secret-of-gateway\n"
    assert not fleet_layout.token("admin.given").exists()
    assert down(fleet_layout)[1] == ()


def test_a_wished_port_in_use_is_named(up, fleet_layout):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        supervisor = up(f'{{"gateway_port": {port}}}')
        assert supervisor.wait(timeout=15) == 1
    assert f"port {port} on 127.0.0.1 is in use" in supervisor.stderr.read()


@pytest.mark.parametrize("content", [b"", b'{"format": 1, "state": "runn', b"\xff\x00"])
@pytest.mark.parametrize("is_killed", [True, False], ids=["supervisor killed", "supervisor alive"])
def test_down_needs_no_readable_record(up, fleet_layout, eventually, content, is_killed):
    supervisor = up()
    eventually(lambda: is_up(fleet_layout))
    ports = ports_of(fleet_layout)
    if is_killed:
        supervisor.kill()
        supervisor.wait()
    fleet_layout.record.write_bytes(content)
    _, left = down(fleet_layout)
    assert left == ()
    supervisor.wait(timeout=30)
    assert_nothing_left(fleet_layout, ports)


def test_a_record_that_says_nothing_keeps_no_fleet_from_starting(up, fleet_layout, eventually):
    fleet_layout.create()
    fleet_layout.record.mkdir()
    up()
    eventually(fleet_layout.record.is_file)
    eventually(lambda: is_up(fleet_layout))
    assert down(fleet_layout)[1] == ()


def test_a_fleet_whose_state_folder_is_removed_ends_and_says_why(up, fleet_layout, eventually):
    supervisor = up()
    eventually(lambda: is_up(fleet_layout))
    ports = ports_of(fleet_layout)
    fleet_layout.state.rename(fleet_layout.state.with_name("elsewhere"))
    _, said = supervisor.communicate(timeout=30)
    assert supervisor.returncode == 1
    assert "was removed or replaced" in said
    assert_nothing_left(fleet_layout, ports)


def test_a_fleet_whose_folder_is_replaced_leaves_the_new_one_alone(up, fleet_layout, eventually):
    supervisor = up()
    eventually(lambda: is_up(fleet_layout))
    fleet_layout.state.rename(fleet_layout.state.with_name("elsewhere"))
    fleet_layout.create()
    fleet_layout.record.write_text("another fleet's")
    supervisor.communicate(timeout=30)
    assert supervisor.returncode == 1
    assert fleet_layout.record.read_text() == "another fleet's"


def test_down_ends_what_is_left_of_a_folder_that_is_gone(up, fleet_layout, eventually):
    supervisor = up()
    eventually(lambda: is_up(fleet_layout))
    ports = ports_of(fleet_layout)
    supervisor.kill()
    supervisor.wait()
    fleet_layout.state.rename(fleet_layout.state.with_name("elsewhere"))
    assert down(fleet_layout) == (4, ())
    assert_nothing_left(fleet_layout, ports)
