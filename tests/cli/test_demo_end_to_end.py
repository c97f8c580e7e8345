"""The demo as a person runs it, and the same with real faults: real rooms, real Envoy, simulated engines."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from threading import Thread

import pytest

from cli.tour import tour
from cli.tour.local_world import LocalWorld
from cli.tour.world import Journey
from local.down import running
from local.ending import end, marked
from local.layout import Layout
from local.ports import is_listening
from local.record import engines, read
from local.start import Wishes, opened
from local.stop_request import StopRequest

pytestmark = pytest.mark.timeout(300)
COMMAND = [sys.executable, "-c", "from cli.main import run; run()"]
STEPS = {step.name: step for step in tour.STEPS}


def until(condition, *, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.02)


@pytest.fixture
def layout(tmp_path):
    layout = Layout(tmp_path / "state")
    yield layout
    end(marked(layout.state), grace_seconds=0.0)


def ports_of(layout):
    rooms = [port for process in read(layout.record).processes for port in process.ports]
    return rooms + [engine.port for engine in engines(layout.engines)]


class FaultyWorld(LocalWorld):
    """The real world with one thing that goes wrong."""

    fault = ""

    def command(self, *arguments):
        said = super().command(*arguments)
        if self.fault == "wrong pin" and arguments[0] == "pin":
            for item in said.document["manifests"]:
                item["pinned"]["spec"]["engine"]["version"] = "0.18.2"
        return said

    def drop_advisory(self, record):
        if self.fault != "dropped record":
            super().drop_advisory(record)
            return
        (self.fleet.layout.advisories / "half.json").write_text(json.dumps(record)[:100])

    @contextmanager
    def chat(self, key, model, text, *, max_tokens):
        if self.fault == "killed envoy":
            os.kill(self.fleet.supervisor.record.processes[-1].identity.pid, signal.SIGKILL)
        with super().chat(key, model, text, max_tokens=max_tokens) as stream:
            if self.fault == "cut stream" and max_tokens > 100:
                Thread(target=self._cut, args=(stream,), daemon=True).start()
            yield stream

    def _cut(self, stream):
        victims = [engine for engine in engines(self.fleet.layout.engines) if "support-chat" in engine.name]
        until(lambda: stream.chunks >= 10)
        for victim in victims:
            os.kill(victim.identity.pid, signal.SIGKILL)


def test_real_faults_fail_the_steps_that_show_them(layout):
    """One fleet, because each start costs seconds: a step is taken with a fault, then without."""
    told = []
    with (
        StopRequest() as stop,
        opened(
            layout,
            Wishes(),
            python=sys.executable,
            environment=os.environ,
            stop=stop,
            tell=told.append,
        ) as fleet,
        closing(FaultyWorld(fleet, fleet.operator_token, agree=lambda _: True, environment=os.environ)) as world,
    ):
        fleet.supervisor.watch_in_background()
        journey = Journey()

        def take(name, fault=""):
            world.fault = fault
            steps = [STEPS[name]]
            (report,) = tour.take(
                steps, world, journey, clock=time.monotonic, begun=lambda _: None, ended=lambda _: None
            )
            return report.error

        assert "support-chat: " in take("deployments", "wrong pin")
        assert take("deployments") is None
        assert "does not answer" in take("tenants", "killed envoy")
        until(lambda: any("envoy runs again" in line for line in told))
        assert take("tenants") is None
        until(lambda: len(world.command("usage", "list", "--group-by", "tenant", "-o", "json").document["items"]) > 1)
        assert "still not marked" in take("exercise", "dropped record")
        assert take("exercise") is None
        assert "did not complete: the engine ended the stream after" in take("rollout", "cut stream")
        ports = ports_of(layout)
    assert running(layout, None) == ()
    assert [port for port in ports if is_listening(port)] == []


def test_the_whole_tour_passes_and_leaves_nothing(tmp_path):
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    argv = [*COMMAND, "demo", "--once", "--yes", "--no-open", "-o", "json"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["ok"] is True
    names = [step["step"] for step in document["steps"]]
    assert names == ["start", *STEPS, "ending"]
    figures = {step["step"]: step["figures"] for step in document["steps"]}
    assert figures["rollout"]["stream_completed"] is True
    assert figures["rollout"]["fingerprints"][0] != figures["rollout"]["fingerprints"][1]
    assert [port for port in figures["ending"]["ports"] if is_listening(port)] == []
    assert list((tmp_path / "enginehouse").iterdir()) == []


def test_kill_9_of_the_real_fleet_then_down_leaves_no_process_and_no_port(layout):
    argv = [*COMMAND, "local", "up", "--state", str(layout.state)]
    supervisor = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        lines = []
        while "Ctrl-C ends everything." not in (lines or [""])[-1]:
            lines.append(supervisor.stdout.readline())
            assert lines[-1], lines
        assert any("First token    eh_" in line for line in lines)
        assert any("API key        ehk_" in line for line in lines)
        ports = ports_of(layout)
        supervisor.send_signal(signal.SIGKILL)
        supervisor.wait()
        shown = subprocess.run(
            [*COMMAND, "local", "status", "--state", str(layout.state), "-o", "json", "--fail"],
            capture_output=True,
            text=True,
        )
        assert shown.returncode == 3
        healthy = {row["process"]: row["healthy"] for row in json.loads(shown.stdout)["processes"]}
        assert healthy == {"supervisor": False, "control-plane": True, "gateway": True, "envoy": True}
        down = subprocess.run([*COMMAND, "local", "down", "--state", str(layout.state)], capture_output=True, text=True)
        assert down.returncode == 0, down.stderr
        assert "3 processes ended" in down.stderr
    finally:
        supervisor.kill()
        supervisor.communicate()
    assert marked(layout.state) == ()
    assert [port for port in ports if is_listening(port)] == []
