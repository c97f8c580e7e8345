"""Placements that were served or failed, judged by the planner: the bars and the rows that miss them."""

import importlib
import sys
from collections import Counter
from pathlib import Path

import pytest

from fleet.planner import plan

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def measured():
    """What others measured, as the benchmark reads it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("planner_facts")


def judged(measured, facts):
    for row in facts.placements:
        answer = plan(facts.model(row), measured.wish_of(row))
        yield row, answer.fits, {reason.rule for reason in answer.reasons}


def test_placements_are_judged_as_they_turned_out(measured, capsys):
    counts, missed, accepted = Counter(), [], []
    for row, fits, rules in judged(measured, measured.facts_at_hand(is_copied=True)):
        works = row["works"]
        if row["model"] in measured.VERSION_BOUND:
            counts[f"version-bound {works}"] += 1
            continue
        right = fits == "yes" if works == "yes" else fits == "no" and measured.rule_of(row["reason"]) in rules
        counts[works] += 1
        counts[f"{works} right"] += right
        counts["unknown"] += fits == "unknown"
        if not right:
            missed.append((works, row["model"], row["precision"], row["gpu"], row["tp"], fits, sorted(rules)))
        if works == "no" and fits == "yes" and measured.rule_of(row["reason"]) in measured.ARITHMETIC:
            accepted.append(row["model"])
    with capsys.disabled():
        sys.stdout.write(f"\nplacements: {dict(counts)}\n")
        for row in missed:
            sys.stdout.write(f"  missed: {row}\n")
    assert not accepted
    assert counts["yes right"] >= 0.9 * counts["yes"]
    assert counts["no right"] >= 0.9 * counts["no"]
    assert counts["unknown"] == 0
