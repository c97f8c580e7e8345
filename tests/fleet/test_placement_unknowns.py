"""What nobody knows is never taken for meeting an objective; hardware that a person wrote down stays theirs."""

from datetime import date

import pytest

from engines.catalogue import load
from fleet.facts import Facts
from fleet.manifest import Manifest
from fleet.placement import choose
from fleet.policy import Policy
from sources.snapshot import bundled

FACTS = Facts(today=date(2030, 1, 1), data=bundled(), policy=Policy(allow_runtime_process=True))


def written(**spec: object) -> Manifest:
    whole = {"workload": "chat", "model": {"id": "Qwen/Qwen3-32B", "quantization": "fp8"}} | spec
    return Manifest.model_validate({"metadata": {"name": "x"}, "spec": whole})


@pytest.mark.parametrize(
    "objectives",
    [
        {"max_cost_per_hour": 0.01},
        {"tpot_p95_seconds": 1e-9},
        {"ttft_p95_seconds": 1e-9},
        {"requests_per_second": 1e9},
    ],
)
def test_an_impossible_objective_is_met_by_nobody_not_even_by_what_is_unknown(objectives: dict[str, float]):
    choice = choose(written(objectives=objectives), FACTS, load())
    assert choice.chosen is None
    assert {item.rule for item in choice.rejections if item.instance_type} & {
        "objective-unknown",
        "objective-cost",
        "objective-tpot",
        "objective-ttft",
        "objective-rate",
    }


def test_the_unknown_is_named_with_what_would_be_right():
    choice = choose(written(objectives={"max_cost_per_hour": 100}), FACTS, load())
    said = [item.reason for item in choice.rejections if item.rule == "objective-unknown"]
    assert said
    assert all("has no price; give one in prices.yaml" in reason for reason in said)
    assert choice.chosen is not None
    assert choice.chosen.estimate.usd_per_hour <= 100


def test_hardware_that_is_written_down_is_taken_with_a_note():
    hardware = {"instance_type": "p6-b200.48xlarge", "gpus": 1}
    choice = choose(written(hardware=hardware, objectives={"max_cost_per_hour": 100}), FACTS, load())
    assert choice.chosen is not None
    assert any("price" in note for note in choice.notes)


def test_requests_longer_than_the_context_are_told_with_both_numbers():
    objectives = {"input_tokens": 40_000, "output_tokens": 100}
    choice = choose(written(batch={"max_model_len": 32_768}, objectives=objectives), FACTS, load())
    assert choice.chosen is None
    assert any("40100 tokens" in item.reason and "32768" in item.reason for item in choice.rejections)
