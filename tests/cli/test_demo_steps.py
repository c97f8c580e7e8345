"""Each step of the tour fails when what it shows is not so, and says its name."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.tour.report import Report
from cli.tour.show import Options, Show
from cli.tour.steps.exercise import exercise_record
from cli.tour.stream import ChatStream, StreamCut
from cli.tour.tour import STEPS, Step, take
from cli.tour.world import Journey
from local.ending import marked

ROOT = Path(__file__).parents[2]


def _fake_house():
    """The module beside this file; tests are no package."""
    spec = importlib.util.spec_from_file_location("fake_tour_world", Path(__file__).with_name("fake_tour_world.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


fake = _fake_house()


def tour(*faults):
    said = []
    reports = take(
        STEPS,
        fake.FakeHouse(*faults),
        Journey(),
        clock=time.monotonic,
        begun=lambda step: said.append(step.name),
        ended=lambda report: said.append(report.name),
    )
    return reports


def test_a_sound_house_passes_every_step_in_order():
    reports = tour()
    assert [(report.name, report.error) for report in reports] == [(step.name, None) for step in STEPS]
    assert all(report.evidence.lines for report in reports)


def test_the_engine_that_was_chosen_does_not_stand_among_those_that_were_not():
    (deployments,) = (report for report in tour() if report.name == "deployments")
    lines = [str(line) for line in deployments.evidence.lines]
    assert any("on vllm 0.33.0 (not sglang)" in line for line in lines), lines


@pytest.mark.parametrize(
    ("fault", "step", "words"),
    [
        ("no advisories", "advisories", "knows 3 advisories"),
        ("wrong pin", "deployments", "0.18.2 was never published"),
        ("lenient rules", "runbook", "the control plane took vllm-multimodal-0-18-2"),
        ("killed envoy", "tenants", "does not answer"),
        ("open door", "tenants", "a wrong key got"),
        ("leaky tenants", "tenants", "acme asking for invoice-fields got 200; 404 would be right"),
        ("dropped record", "exercise", "still not marked"),
        ("another advisory", "exercise", "not because of"),
        ("no proposal", "exercise", "no new pin is proposed"),
        ("cut stream", "rollout", "was cut after 2 chunks"),
        ("broken chain", "audit", "chain does not hold"),
        ("lost audit", "audit", "does not tell that support-chat was created"),
    ],
)
def test_a_fault_fails_the_step_that_shows_it(fault, step, words):
    reports = tour(fault)
    assert reports[-1].name == step
    assert words in reports[-1].error
    assert all(report.error is None for report in reports[:-1])


def test_an_engine_that_does_not_start_fails_the_deployments_with_its_reason():
    reports = tour("dead engine")
    assert reports[-1].name == "deployments"
    assert "support-chat is Failed" in reports[-1].error


def test_without_a_yes_nothing_is_rolled_out_and_the_tour_goes_on():
    reports = tour("nobody agrees")
    assert [report.error for report in reports] == [None] * len(STEPS)
    assert reports[5].evidence.figures == {"rolled_out": False}


def test_an_answer_of_another_form_fails_its_step_instead_of_the_program():
    step = Step("odd", "An odd step", lambda _world, _journey: {}["missing"])
    (report,) = take([step], None, Journey(), clock=time.monotonic, begun=print, ended=print)
    assert "another form than expected" in report.error


def test_keys_never_show_in_the_evidence():
    shown = str([report.document for report in tour()])
    assert "key-of-" not in shown


@given(st.lists(st.text("ab {}:", min_size=1), max_size=8))
def test_a_stream_counts_its_chunks_whatever_comments_stand_between(pieces):
    lines = [line for piece in pieces for line in (": keep-alive", fake.event(piece, "f"), "")]
    stream = ChatStream([*lines, fake.USAGE, "data: [DONE]", "data: never read"]).finish()
    assert stream.is_complete
    assert stream.chunks == len(pieces)
    assert stream.usage == {"prompt_tokens": 5, "completion_tokens": 3}


@pytest.mark.parametrize("cut", range(3))
def test_a_stream_without_its_end_mark_is_cut_wherever_it_ends(cut):
    lines = [fake.event("a", "f"), fake.event("b", "f"), fake.USAGE][:cut]
    with pytest.raises(StreamCut, match="without its end mark"):
        ChatStream(lines).finish()


def test_an_event_that_is_no_json_cuts_a_stream():
    with pytest.raises(StreamCut, match="after 1 chunks came an event that is no JSON object"):
        ChatStream([fake.event("a", "f"), "data: {half"]).finish()


def test_an_error_inside_a_stream_cuts_it():
    with pytest.raises(StreamCut, match="the engine ended the stream after 1 chunks"):
        ChatStream([fake.event("a", "f"), 'data: {"error": {"message": "aborted"}}']).finish()


def test_the_exercise_is_plainly_marked_and_names_no_real_record():
    record = exercise_record("vllm", "0.32.0", "0.33.0", "2030-01-01T00:00:00Z")
    assert record["summary"].startswith("EXERCISE, not a real advisory")
    assert record["database_specific"] == {"exercise": True}
    assert set("eis01") <= set(record["id"].removeprefix("GHSA-"))


@pytest.mark.parametrize("folder", ["local/environments/local:local", "runbook-2026:runbook-2026"])
def test_the_programs_manifests_are_the_examples(folder):
    examples, packaged = folder.split(":")
    ours = {path.name: path.read_text() for path in (ROOT / "cli/tour/manifests" / packaged).glob("*.yaml")}
    theirs = {
        path.name: path.read_text()
        for path in (ROOT / "examples" / examples).glob("*.yaml")
        if not path.name.endswith(".pinned.yaml")
    }
    assert ours
    assert ours == theirs


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ("wrong pin", "deployments"),
        ("killed envoy", "tenants"),
        ("dropped record", "exercise"),
        ("cut stream", "rollout"),
    ],
)
def test_a_failed_step_ends_the_demo_with_1_and_its_name(fault, step, tmp_path, capsys):
    """Fake rooms below, a faulty house in front, the whole demo in between."""
    show = Show(
        options=Options(once=True, yes=True, state=tmp_path / "state"),
        environment={**os.environ, "PYTHONPATH": str(ROOT / "tests/local/fake_rooms")},
        home=tmp_path,
        report=Report(as_json=True),
        agree=lambda _: True,
        world_of=lambda _fleet: fake.FakeHouse(fault),
    )
    assert show.run() == 1
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert document["failed_step"] == step
    assert [item["step"] for item in document["steps"] if item["ok"]][-1] == "ending"
    assert f"the step '{step}' failed" in said.err
    assert marked(tmp_path / "state") == ()
