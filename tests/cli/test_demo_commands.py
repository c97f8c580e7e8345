"""`enginehouse local` and `enginehouse demo` where nothing runs: what they say and how they end."""

import io
import json

import pytest
from typer.testing import CliRunner

from cli.commands.local import local_app
from cli.exits import CommandError, UsageError
from cli.main import app
from cli.tour.evidence import Evidence, StepReport
from cli.tour.report import Report
from local.layout import Layout
from local.lock import held


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command with a state home of its own; the home holds no fleet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def invoke(*arguments):
        return CliRunner().invoke(app, list(arguments), catch_exceptions=True)

    return invoke


def test_status_without_a_fleet_is_empty_and_done(run):
    result = run("local", "status", "-o", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert document["processes"] == []
    assert [fleet["state"] for fleet in document["fleets"]] == ["down"]


def test_status_fails_on_demand_where_nothing_runs(run):
    assert run("local", "status", "--fail").exit_code == 3


def test_down_where_nothing_runs_is_done(run, tmp_path):
    result = run("local", "down")
    assert result.exit_code == 0
    assert f"{tmp_path}/enginehouse/local: nothing was running" in result.stderr


def test_down_looks_after_every_fleet_of_the_person(run, tmp_path):
    for name in ("local", "demo-1"):
        Layout(tmp_path / "enginehouse" / name).create()
    result = run("local", "down")
    assert "enginehouse/local: nothing was running" in result.stderr
    assert "enginehouse/demo-1: nothing was running" in result.stderr


def test_up_says_who_has_the_folder(run, tmp_path):
    layout = Layout(tmp_path / "enginehouse" / "local")
    layout.create()
    with held(layout.lock):
        result = run("local", "up")
    assert isinstance(result.exception, CommandError)
    assert "is in use by process" in str(result.exception)


def test_a_broken_record_is_told(run, tmp_path):
    layout = Layout(tmp_path / "enginehouse" / "local")
    layout.create()
    layout.record.write_text("{half")
    result = run("local", "status")
    assert isinstance(result.exception, CommandError)
    assert "can't be read" in str(result.exception)


def test_the_demo_prints_tables_or_json_only(run):
    for output in ("yaml", "name"):
        result = run("demo", "-o", output)
        assert result.exit_code == 2
        assert "'table', 'json'" in result.stderr


def test_the_demo_names_an_engine_that_is_not_offered(run):
    result = run("demo", "--engine", "llama")
    assert result.exit_code == 2
    assert "'simulated', 'vllm'" in result.stderr


def test_a_demo_without_its_engine_fails_at_the_step_start(run, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    result = run("demo", "--once", "--engine", "vllm", "-o", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["failed_step"] == "start"
    assert "needs the program 'vllm'" in document["steps"][0]["error"]


def test_every_local_command_says_what_it_does():
    for name in ("up", "down", "status", "token"):
        result = CliRunner().invoke(local_app, [name, "--help"])
        assert result.exit_code == 0
        assert "--state" in result.stdout


@pytest.mark.parametrize("scope", ["gateway", "reader", "operator", "security-admin"])
def test_a_token_of_each_scope_is_made_and_printed_once(run, tmp_path, scope):
    layout = Layout(tmp_path / "enginehouse" / "local")
    layout.create()
    layout.control_plane_settings.write_text(json.dumps({"database_url": f"sqlite:///{layout.database}"}))
    result = run("local", "token", "alice", "--scope", scope)
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith("eh_")
    assert result.stdout.count("\n") == 1
    assert "shown this once" in result.stderr


def test_a_token_needs_one_fleet_and_a_name_that_the_fleet_does_not_use(run, tmp_path):
    assert "enginehouse local up" in str(run("local", "token", "alice", "--scope", "reader").exception)
    for name in ("local", "demo-1"):
        layout = Layout(tmp_path / "enginehouse" / name)
        layout.create()
        layout.control_plane_settings.write_text("{}")
    assert "give one with --state" in str(run("local", "token", "alice", "--scope", "reader").exception)
    taken = run("local", "token", "operator", "--scope", "reader")
    assert isinstance(taken.exception, UsageError)
    assert "used by the fleet itself" in str(taken.exception)


def test_the_report_can_be_read_where_nothing_can_be_drawn(run, monkeypatch):
    told = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr("sys.stdout", told)
    report = Report(as_json=False)
    report.begun("A step")
    report.ended(StepReport("step", "A step", 0.1, Evidence(("seen",))))
    report.ended(StepReport("other", "Another", 0.1, None, "not seen"))
    told.seek(0)
    assert told.read().splitlines()[:4] == [
        "ok step: A step (0.1 s)",
        "    seen",
        "FAILED other: Another (0.1 s)",
        "    not seen",
    ]
