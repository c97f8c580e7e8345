"""``enginehouse simulate``: the documented keys, clear errors, and talk on stderr."""

import json

import pytest
from typer.testing import CliRunner

from cli.commands import simulate as command
from cli.main import app
from simulator.replay import PolicyName

KEYS = {
    "hit_ratio",
    "ttft_seconds",
    "busiest_over_mean_requests",
    "busiest_over_mean_tokens",
    "requests",
    "per_replica_requests",
}


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    lines = [
        {"timestamp": 100 * n, "input_length": 1500, "output_length": 3, "hash_ids": [0, n % 7, n]} for n in range(40)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def run(*arguments):
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


def answer(*arguments):
    result = run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} in the answer"))


@pytest.mark.parametrize("policy", PolicyName)
def test_the_answer_has_exactly_the_documented_keys(trace, policy):
    found = answer("--trace", trace, "--policy", policy, "--replicas", 4, "--cache-blocks", 20, "--seed", 3)
    assert set(found) == KEYS
    assert list(found["ttft_seconds"]) == ["mean", "p50", "p90", "p99"]
    assert found["requests"] == sum(found["per_replica_requests"]) == 40
    assert len(found["per_replica_requests"]) == 4


def test_the_default_policy_is_the_estimated_time_to_first_token(trace):
    cell = ("--trace", trace, "--replicas", 2, "--cache-blocks", 9)
    assert answer(*cell) == answer(*cell, "--policy", "estimated_ttft", "--load", 0.7)


def test_what_goes_wrong_can_be_asked_for(trace):
    cell = ("--trace", trace, "--replicas", 2, "--cache-blocks", 9)
    disturbed = ("--gateways", 2, "--sharing", "kv-events", "--metrics-delay", 5, "--restart-at", 1)
    assert answer(*cell, *disturbed, "--restart-seconds", 1)["requests"] == 40


def test_people_get_a_table(trace):
    result = run("--trace", trace, "--replicas", 2, "--cache-blocks", 9)
    assert result.exit_code == 0
    assert "hit ratio" in result.stdout
    assert "time to first token, p99" in result.stdout


def test_a_long_run_says_how_far_it_is_on_stderr(trace, monkeypatch):
    monkeypatch.setattr(command, "PROGRESS_SECONDS", 0.0)
    result = run("--trace", trace, "--replicas", 2, "--cache-blocks", 9, "-o", "json")
    assert json.loads(result.stdout)["requests"] == 40
    assert "of 40 requests replayed" in result.stderr


def test_blocks_of_another_size_are_noted(trace):
    result = run("--trace", trace, "--replicas", 2, "--cache-blocks", 9, "--block-tokens", 16)
    assert result.exit_code == 0
    assert "blocks of about 500 fit (--block-tokens)" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--load", "0"), "--load 0 is out of range"),
        (("--load", "nan"), "--load nan is out of range"),
        (("--prefill-rate", "inf"), "--prefill-rate inf is out of range"),
        (("--metrics-delay", "-1"), "--metrics-delay -1 is out of range"),
        (("--restart-at", "-1"), "--restart-at -1 is out of range"),
        (("--trace", "absent.jsonl"), "absent.jsonl can't be read: No such file"),
        (("--policy", "best"), "best"),
        (("--replicas", "0"), "--replicas"),
        (("--cache-blocks", "many"), "--cache-blocks"),
    ],
)
def test_what_can_not_be_asked_ends_with_exit_code_2(trace, arguments, said):
    result = run("--trace", trace, "--replicas", "2", "--cache-blocks", "9", *arguments)
    code = getattr(result.exception, "code", result.exit_code)
    assert int(code) == 2
    assert said in f"{result.output} {result.exception}"
    assert result.stdout == "" or "hit" not in result.stdout


def test_a_malformed_trace_ends_with_exit_code_2(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"timestamp": 1}\n')
    result = run("--trace", path, "--replicas", 2, "--cache-blocks", 9)
    assert int(result.exception.code) == 2
    assert str(result.exception) == f"{path}: line 1: input_length must be a whole number of tokens, not absent"
