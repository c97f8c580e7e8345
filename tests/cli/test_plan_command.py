"""``enginehouse plan``: the documented object, verdicts with exit 0, and clear errors for what can't be read."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from cli.main import app
from cli.plan_card import BAR_WIDTH, bar
from fleet.model_catalogue import find

KEYS = frozenset(
    [
        "model",
        "weights_bytes_total",
        "kv_bytes_per_token",
        "kv_sliding",
        "state_bytes_per_sequence",
        "per_gpu",
        "kv_tokens",
        "fits",
        "reasons",
        "parallel",
        "alternatives",
        "latency",
        "throughput_tokens_per_second",
        "cold_start_seconds",
        "cost",
    ]
)
PARTS = ("weights_bytes", "kv_cache_bytes", "activation_bytes", "overhead_bytes", "free_bytes")
DENSE = json.loads((Path(__file__).parents[1] / "data" / "models" / "dense.json").read_text(encoding="utf-8"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def answer(*arguments: str) -> dict[str, object]:
    result = run("plan", *arguments, "-o", "json")
    assert result.exit_code == 0, result.output

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} in the answer")

    found: dict[str, object] = json.loads(result.stdout, parse_constant=refuse)
    return found


def config(folder: Path, **changes: object) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(DENSE | changes))
    return str(path)


def test_the_answer_has_every_documented_key_and_its_parts_sum_to_the_visible_memory():
    found = answer("--model", "Qwen/Qwen3-32B", "--gpu", "H100", "--gpus", "2", "--tp", "2", "--context", "32768")
    assert found.keys() >= KEYS
    assert found["fits"] == "yes"
    assert found["reasons"] == []
    assert sum(found["per_gpu"][part] for part in PARTS) == found["hardware"]["visible_bytes"]
    assert found["parallel"]["tp"] == 2


@settings(max_examples=25, deadline=None)
@given(
    model=st.sampled_from(["Qwen/Qwen3-8B", "openai/gpt-oss-120b", "deepseek-ai/DeepSeek-V3", "google/gemma-2-9b-it"]),
    gpu=st.sampled_from(["L4", "A100-80", "H100", "B200"]),
    tensor=st.integers(min_value=1, max_value=16),
    context=st.integers(min_value=1, max_value=200_000),
)
def test_any_plan_gets_an_answer_with_a_reason_for_each_no(model, gpu, tensor, context):
    found = answer("--model", model, "--gpu", gpu, "--tp", str(tensor), "--context", str(context))
    assert (found["fits"] == "yes") == (found["reasons"] == [])
    assert all(reason["rule"] and reason["message"] for reason in found["reasons"])


def test_what_does_not_fit_is_an_answer_with_the_rule_the_numbers_and_what_would_fit():
    found = answer("--model", "openai/gpt-oss-120b", "--gpu", "L4", "--tp", "1")
    assert found["fits"] == "no"
    assert found["reasons"][0]["rule"] == "memory"
    assert found["reasons"][0]["evidence"]["weights_bytes"] > found["reasons"][0]["evidence"]["visible_bytes"]
    shown = run("plan", "--model", "openai/gpt-oss-120b", "--gpu", "L4", "--tp", "1")
    assert shown.exit_code == 0
    assert "does not fit: 1 x L4 as TP1" in shown.stdout
    assert "what would fit" in shown.stdout


def test_an_alias_takes_the_precision_that_its_name_states():
    assert answer("--model", "Qwen/Qwen3-32B-AWQ", "--gpu", "L4")["engine"]["quantization"] == "awq"
    assert answer("--model", "Qwen/Qwen3-32B-AWQ", "--quantization", "fp8")["engine"]["quantization"] == "fp8"


def test_a_file_gives_the_same_figures_as_the_catalogue(tmp_path: Path):
    known = find("Qwen/Qwen3-8B")
    path = tmp_path / "Qwen--Qwen3-8B.json"
    path.write_text(json.dumps(known.config))
    assert answer("--model", str(path), "--gpu", "L4") == answer("--model", "Qwen/Qwen3-8B", "--gpu", "L4")


def test_a_model_that_nobody_knows_is_not_found_and_the_nearest_ids_are_named():
    result = run("plan", "--model", "Qwen/Qwen3-33B")
    assert result.exception.code == 4
    assert "Qwen/Qwen3-32B" in str(result.exception)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_attention_heads": -8}, "num_attention_heads"),
        ({"hidden_size": "large"}, "hidden_size"),
        ({"num_attention_heads": 33, "num_key_value_heads": 11}, "num_attention_heads"),
        ({"vocab_size": 0}, "vocab_size"),
    ],
)
def test_a_broken_configuration_is_one_error_with_the_key(tmp_path: Path, changes: dict[str, object], said: str):
    result = run("plan", "--model", config(tmp_path, **changes))
    assert result.exception.code == 2
    assert said in str(result.exception)


@pytest.mark.parametrize("content", ["", "not json", "[]", "null", "[" * 100_000, '{"a":' * 50_000])
def test_what_is_no_configuration_says_so(tmp_path: Path, content: str):
    path = tmp_path / "config.json"
    path.write_text(content)
    result = run("plan", "--model", str(path))
    assert result.exception.code == 2
    assert "config.json" in str(result.exception)


def test_a_file_of_a_hundred_megabytes_is_not_read(tmp_path: Path):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100 * 1024**2)
    result = run("plan", "--model", str(path))
    assert result.exception.code == 2
    assert "104,857,600 bytes" in str(result.exception)


def test_a_pipe_is_not_waited_for(tmp_path: Path):
    path = tmp_path / "config.json"
    os.mkfifo(path)
    result = run("plan", "--model", str(path))
    assert result.exception.code == 2
    assert "no regular file" in str(result.exception)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gpu", "H1000"),
        ("--gpu", "H100", "--mig-profile", "9g"),
        ("--instance", "p5.1xlarge"),
        ("--quantization", "fp7"),
        ("--kv-dtype", "int2"),
        ("--tp", "0"),
        ("--context", "-1"),
        ("--gpu-memory-utilization", "1.5"),
        ("--instance", "g6.xlarge", "--gpu", "H100"),
        ("--engine", "vlm"),
    ],
)
def test_a_wish_that_can_not_be_read_is_a_usage_error_with_the_value(arguments: tuple[str, ...]):
    result = run("plan", "--model", "Qwen/Qwen3-8B", *arguments)
    assert result.exception.code == 2
    assert arguments[-1] in str(result.exception) or arguments[1] in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--input-tokens", "100"), "--context is 10, less than --input-tokens 100;"),
        (("--output-tokens", "11"), "--context is 10, less than --output-tokens 11;"),
        (("--input-tokens", "8", "--output-tokens", "3"), "less than --input-tokens 8 + --output-tokens 3;"),
    ],
)
def test_a_context_shorter_than_the_request_is_a_usage_error_with_what_would_be_right(arguments, said):
    result = run("plan", "--model", "Qwen/Qwen3-8B", "--context", "10", *arguments)
    assert result.exception.code == 2
    assert said in str(result.exception)
    assert "give at least 1" in str(result.exception)


def test_a_version_that_nobody_measured_takes_the_nearest_and_says_so():
    found = answer("--model", "Qwen/Qwen3-8B", "--gpu", "H100", "--engine-version", "9.9.9")
    assert any("9.9.9 was not measured" in note for note in found["notes"])


def test_without_a_model_it_says_what_to_give():
    result = run("plan")
    assert result.exception.code == 2
    assert "--model" in str(result.exception)


# --- A whole environment ----------------------------------------------------------------------------------------
POOLS = "pools: [{name: h100, instance_type: p5.48xlarge, max_nodes: 1}, {name: l4, instance_type: g6.12xlarge}]\n"
WRITTEN = """
kind: InferenceDeployment
metadata: {name: %s}
spec:
  workload: %s
  model: {id: %s}
"""


def environment(folder: Path) -> Path:
    place = folder / "local"
    place.mkdir()
    (place / "pools.yaml").write_text(POOLS)
    (place / "small.yaml").write_text(WRITTEN % ("small", "embedding", "Qwen/Qwen3-0.6B"))
    (place / "large.yaml").write_text(WRITTEN % ("large", "moe", "deepseek-ai/DeepSeek-V3"))
    return place


def test_a_fleet_plan_places_what_fits_and_says_why_the_rest_does_not(tmp_path: Path):
    result = run("plan", "--fleet", str(environment(tmp_path)), "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [item["deployment"] for item in found["placed"]] == ["small"]
    assert [item["deployment"] for item in found["unplaced"]] == ["large"]
    assert all(reason["rule"] and reason["message"] for reason in found["unplaced"][0]["reasons"])
    shown = run("plan", "--fleet", str(tmp_path / "local"))
    assert "does not fit" in shown.stdout


def test_an_environment_without_pools_says_what_to_write_down(tmp_path: Path):
    (environment(tmp_path) / "pools.yaml").unlink()
    result = run("plan", "--fleet", str(tmp_path / "local"))
    assert result.exception.code == 2
    assert "pools.yaml" in str(result.exception)


# --- The picture ---------------------------------------------------------------------------------------------------
@given(st.lists(st.integers(min_value=0, max_value=10**12), min_size=5, max_size=5))
def test_the_bar_is_always_as_wide_and_shows_every_part_that_is_there(sizes: list[int]):
    drawn = bar(sizes, sum(sizes))
    assert len(drawn) == BAR_WIDTH
    assert drawn.strip() or not any(sizes)


@pytest.mark.parametrize("word", ["h100", "H100"])
def test_a_gpu_is_known_in_any_capitals(word: str) -> None:
    assert answer("--model", "Qwen/Qwen3-8B", "--gpu", word)["hardware"]["gpu"] == "H100"  # type: ignore[index]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--gpu", "A100", "did you mean 'A100-40' or 'A100-80'?"),
        ("--gpu", "banana", "known: A10"),
        ("--quantization", "FP9", "it is one of bf16"),
    ],
)
def test_an_unknown_word_gets_a_near_guess_or_the_known_ones(option: str, value: str, said: str) -> None:
    assert said in str(run("plan", "--model", "Qwen/Qwen3-8B", option, value).exception)


def test_tokens_in_thousands_are_asked_back() -> None:
    result = run("plan", "--model", "Qwen/Qwen3-8B", "--context", "32k")
    assert result.exit_code == 2
    assert "32k may be 32000 or 32768" in " ".join(result.output.split())


def test_a_manifest_is_not_a_model(tmp_path: Path) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text("kind: InferenceDeployment\n")
    assert "give --model the id under spec.model" in str(run("plan", "--model", str(path)).exception)


@pytest.mark.parametrize("option", ["--model", "--gpu", "--instance", "--engine-version", "--mig-profile"])
def test_an_option_that_is_empty_is_not_one_that_was_left_out(option):
    result = run("plan", *(() if option == "--model" else ("--model", "Qwen/Qwen3-8B")), option, "")
    assert result.exception.code == 2
    assert f"{option} is empty" in str(result.exception)


@pytest.mark.parametrize("option", ["--input-tokens", "--output-tokens", "--concurrency", "--max-num-seqs", "--tp"])
def test_numbers_beyond_every_machine_get_an_answer_all_the_same(option: str) -> None:
    assert answer("--model", "Qwen/Qwen3-8B", "--gpu", "H100", option, str(10**15))["fits"] in {"yes", "no"}
