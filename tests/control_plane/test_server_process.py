"""The server as a process: it says where it listens, survives kill -9, ends on SIGTERM, and names a port in use."""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
import structlog

from control_plane import logs
from control_plane.__main__ import main
from control_plane.adapters import process_table
from control_plane.adapters.process_records import ProcessRecords
from control_plane.records import Scope
from control_plane.settings import read_settings
from control_plane.storage import token_service
from fleet.api_keys import TOKEN_MARK, is_well_formed

FAKE = Path(__file__).with_name("fake_engine.py")
DEADLINE_SECONDS = 60.0


class Server:
    """One folder with settings, and the processes that were started on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ready = folder / "ready.json"
        self.settings = folder / "settings.json"
        self.processes: list[subprocess.Popen] = []
        for name in ("advisories", "control"):
            (folder / name).mkdir()
        self.configure()
        service = token_service(read_settings(self.settings))
        self.token = service.create("admin", Scope.SECURITY_ADMIN)
        self.clients: list[httpx2.Client] = []

    def configure(self, **changes) -> None:
        settings = {
            "database_url": f"sqlite:///{self.folder}/state.db",
            "port": 0,
            "metrics_port": 0,
            "advisory_folders": [str(self.folder / "advisories")],
            "cluster": "processes",
            "launch": {"vllm": [sys.executable, str(FAKE), str(self.folder / "control")]},
            "process_dir": str(self.folder / "engines"),
            "ready_file": str(self.ready),
            "reconcile_seconds": 0.1,
        }
        self.settings.write_text(json.dumps(settings | changes))

    def command(self, name: str, *arguments: str) -> int:
        return main([name, "--settings", str(self.settings), *arguments])

    def start(self) -> httpx2.Client:
        self.ready.unlink(missing_ok=True)
        argv = [sys.executable, "-m", "control_plane", "serve", "--settings", str(self.settings)]
        with (self.folder / "log").open("ab") as log:
            self.processes.append(subprocess.Popen(argv, stdout=log, stderr=log))
        until(self.ready.exists)
        self.said = json.loads(self.ready.read_text())
        headers = {"Authorization": f"Bearer {self.token}"}
        self.clients.append(httpx2.Client(base_url=self.said["url"], headers=headers, timeout=30, trust_env=False))
        return self.clients[-1]

    def end(self, number: signal.Signals) -> int:
        process = self.processes[-1]
        process.send_signal(number)
        return process.wait(timeout=DEADLINE_SECONDS)


def until(holds):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (found := holds()):
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.05)
    return found


@pytest.fixture(autouse=True)
def restored_logs() -> Iterator[None]:
    """A server that is started in this process sets the logs up: put them back."""
    handlers, level = logging.getLogger().handlers[:], logging.getLogger().level
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers
    logging.getLogger().setLevel(level)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    for client in made.clients:
        client.close()
    for process in made.processes:
        if process.poll() is None:
            process.kill()
        process.wait()
    for record in ProcessRecords(tmp_path / "engines").all():
        if record.pid is not None and record.start_ticks is not None:
            process_table.send(record.pid, record.start_ticks, signal.SIGKILL)


def phase(client: httpx2.Client) -> str:
    return client.get("/v1/deployments/chat").json()["status"]["phase"]


def drop_advisory(folder: Path) -> None:
    events = [{"introduced": "0"}]
    affected = [{"package": {"ecosystem": "PyPI", "name": "vllm"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}]
    rating = [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}]
    document = {"schema_version": "1.7.0", "id": "GHSA-exer-cise-0003", "modified": "2030-01-01T00:00:00Z"}
    draft = folder / ".draft"
    draft.write_text(json.dumps(document | {"affected": affected, "severity": rating}))
    os.replace(draft, folder / "exercise.json")


def test_a_killed_control_plane_finds_its_engines_and_its_state_again(server, world_maker):
    client = server.start()
    made = client.put("/v1/deployments/chat", json=world_maker())
    assert made.status_code == 201, made.text
    until(lambda: phase(client) == "Running")
    before = client.get("/v1/deployments/chat").json()["status"]["endpoints"]
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    client = server.start()
    until(lambda: phase(client) == "Running")
    assert client.get("/v1/deployments/chat").json()["status"]["endpoints"] == before
    drop_advisory(server.folder / "advisories")
    until(lambda: "GHSA-exer-cise-0003" in client.get("/v1/deployments/chat").text)
    assert client.get("/v1/deployments/chat").json()["status"]["endpoints"] == before
    assert client.get("/readyz").json()["ready"] is True
    metrics = httpx2.get(f"{server.said['metrics_url']}/metrics", trust_env=False).text
    assert 'enginehouse_deployments{phase="Running"} 1.0' in metrics
    assert 'enginehouse_deployments_compliant{status="False"} 1.0' in metrics
    assert client.delete("/v1/deployments/chat", headers={"If-Match": "*"}).status_code == 204
    until(lambda: ProcessRecords(server.folder / "engines").all() == [])
    assert server.end(signal.SIGTERM) == 0
    log = (server.folder / "log").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"server.started", "server.stopped", "replica.started", "review.done"} <= {line["event"] for line in lines}
    assert server.token not in log


def test_sigterm_answers_who_waits_and_leaves_engines_running(server, world_maker):
    client = server.start()
    client.put("/v1/deployments/chat", json=world_maker())
    until(lambda: phase(client) == "Running")
    (record,) = ProcessRecords(server.folder / "engines").all()
    assert server.end(signal.SIGTERM) == 0
    assert process_table.is_alive(record.pid, record.start_ticks)


@pytest.mark.parametrize("setting", ["port", "metrics_port"])
def test_a_port_in_use_is_one_clear_sentence(server, capfd, setting):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        server.configure(**{setting: port})
        assert server.command("serve") == 1
    said = capfd.readouterr().err
    assert f"127.0.0.1:{port}" in said
    assert f"'{setting}'" in said


@pytest.mark.parametrize("command", [("serve",), ("token", "--name", "x", "--scope", "reader")])
def test_a_database_that_can_not_be_made_is_one_clear_sentence(server, capfd, command):
    server.configure(database_url="sqlite:////proc/nowhere/state.db")
    assert server.command(*command) == 1
    assert "database" in capfd.readouterr().err


def test_a_token_is_printed_once_alone_on_stdout(server, capfd):
    assert server.command("token", "--name", "ops", "--scope", "operator") == 0
    (line,) = capfd.readouterr().out.splitlines()
    assert is_well_formed(line, TOKEN_MARK)


@pytest.mark.parametrize(("name", "scope"), [("Not A Name", "reader"), ("x", "root")])
def test_a_token_needs_a_name_and_a_known_scope(server, name, scope):
    with pytest.raises(SystemExit) as ended:
        server.command("token", "--name", name, "--scope", scope)
    assert ended.value.code == 2


def test_logs_hold_no_secret_even_when_told_one(capfd):
    logs.configure()
    logs.get().info("x", token="eh_secret", authorization="eh_secret")
    said = capfd.readouterr().err
    assert json.loads(said)["token"] == "[removed]"
    assert "eh_secret" not in said
