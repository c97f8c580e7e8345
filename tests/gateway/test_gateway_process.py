"""Starting the gateway with wrong settings or in a taken place: one clear sentence and exit code 1."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2
import pytest

from gateway.errors import GatewayError
from gateway.settings import read_settings


def settings_in(folder, **changes):
    settings = {
        "control_plane_url": "http://127.0.0.1:1",
        "token_file": str(folder / "token"),
        "socket_path": str(folder / "d.sock"),
        "state_dir": str(folder / "state"),
        "listen_port": 10000,
        "admin_port": 10001,
        "ready_file": str(folder / "ready.json"),
        **changes,
    }
    file = folder / "settings.json"
    file.write_text(json.dumps({name: value for name, value in settings.items() if value is not None}))
    return file


def start(file):
    command = [sys.executable, "-m", "gateway", "--settings", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the kernel has no /dev/full")
def test_a_log_that_can_not_be_written_stops_neither_the_gateway_nor_its_following(tmp_path):
    ready = tmp_path / "ready.json"
    (tmp_path / "token").write_text("reader-token")
    command = [sys.executable, "-m", "gateway", "--settings", str(settings_in(tmp_path))]
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen(command, stdout=full, stderr=full)
    try:
        wait_until(lambda: ready.exists() or process.poll() is not None)
        assert process.poll() is None
        url = json.loads(ready.read_text())["metrics_url"]
        before = failures(url)
        wait_until(lambda: failures(url) > before + 1)
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def failures(url):
    page = httpx2.get(url, trust_env=False).text
    return float(re.search(r"^enginehouse_gateway_sync_failures_total (\S+)$", page, re.M)[1])


def wait_until(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.05)


def test_a_gateway_that_starts_again_does_not_write_envoys_configuration_anew(tmp_path):
    (tmp_path / "token").write_text("reader-token")
    seen = []
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-m", "gateway", "--settings", str(settings_in(tmp_path))])
        try:
            wait_until((tmp_path / "ready.json").exists)
            seen.append((tmp_path / "state" / "envoy.json").stat().st_ino)
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
    assert seen[0] == seen[1]


@pytest.fixture
def open_folder():
    """A folder that other users can enter, beside those of pytest: it closes its own to them."""
    with tempfile.TemporaryDirectory(prefix="enginehouse-open-") as name:
        folder = Path(name)
        if not all(place.stat().st_mode & 0o001 for place in folder.parents):
            pytest.skip(f"other users can't enter {folder.parent}, where temporary folders are")
        folder.chmod(0o755)
        yield folder


@pytest.mark.skipif(os.getuid() != 0, reason="a folder of another user takes root to make")
@pytest.mark.parametrize("mode", [0o500, 0o555])
def test_a_state_folder_of_another_user_is_named_with_the_remedy(open_folder, mode):
    state = open_folder / "state"
    state.mkdir(mode=mode)
    file = settings_in(open_folder)
    file.chmod(0o644)
    as_nobody = (  # the project's own files may be closed to others, so they are read before
        "import os, pathlib, sys; import gateway.main; from gateway.start import run; "
        "os.setgid(65534); os.setuid(65534); sys.exit(run(pathlib.Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", as_nobody, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert str(open_folder) in done.stderr
    assert "this user may write" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"listen_prot": 1}, "'listen_prot' is not known; did you mean 'listen_port'?"),
        ({"listen_port": 0}, "listen_port: Input should be greater than or equal to 1"),
        ({"listen_host": "localhost"}, "'localhost' is no IP address; 127.0.0.1"),
        ({"control_plane_url": "127.0.0.1:1"}, "must start with http://"),
        ({"socket_path": "/tmp/" + "x" * 120}, "this path may have 101"),  # noqa: S108
        ({"token_file": None}, "token_file: Field required"),
    ],
)
def test_a_mistake_in_the_settings_is_named(tmp_path, changes, told):
    with pytest.raises(GatewayError) as caught:
        read_settings(settings_in(tmp_path, **changes))
    assert told in str(caught.value)
    assert str(tmp_path / "settings.json") in str(caught.value)


def test_settings_that_are_not_there_or_no_json_are_named(tmp_path):
    with pytest.raises(GatewayError, match="No such file"):
        read_settings(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(GatewayError, match="Invalid JSON"):
        read_settings(tmp_path / "bad.json")


def test_a_taken_metrics_port_is_said_and_nothing_is_left(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        answer = start(settings_in(tmp_path, metrics_port=port))
    assert answer.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port} for metrics" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "ready.json").exists()
    assert not (tmp_path / "d.sock").exists()


def test_a_second_gateway_on_the_same_socket_is_refused(tmp_path):
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(tmp_path / "d.sock"))
        living.listen()
        answer = start(settings_in(tmp_path))
    assert answer.returncode == 1
    assert f"another gateway listens on {tmp_path / 'd.sock'}" in answer.stderr


def test_a_state_folder_that_is_a_file_is_said(tmp_path):
    (tmp_path / "state").write_text("")
    answer = start(settings_in(tmp_path))
    assert answer.returncode == 1
    assert str(tmp_path / "state") in answer.stderr
    assert "Traceback" not in answer.stderr
