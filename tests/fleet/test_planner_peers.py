"""The side-by-side with other planners: one that is not installed is not counted as wrong."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest


@pytest.fixture
def peers(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    folder = checkout / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    return runpy.run_path(str(folder / "planner_peers.py"))


def test_a_planner_that_is_not_installed_is_neither_right_nor_wrong(peers):
    question = {"config": "x", "precision": "bf16", "ask": "verdict"}
    cases = [SimpleNamespace(title="a", truth=truth, question=question, source="") for truth in ("yes", "no")]
    answers = {
        "ours": [{"value": "yes"}, {"value": "yes"}],
        "silent": [{"cannot": "no such model"}] * 2,
        "absent": [{"cannot": peers["NOT_INSTALLED"]}] * 2,
    }
    right = peers["table_of"](cases, answers, peers["verdict_cell"], {})[-1]
    assert right == ["right", "", "1 of 2", "0 of 2", "not installed", ""]
    _, yes, no, silent = peers["scores_of"](cases, answers)
    assert yes[1:] == ["1", "0", "not installed"]
    assert no[1:] == ["0", "0", "not installed"]
    assert silent == ["no answer", "0", "2", "-"]
