"""What people see of a plan: readable figures, nothing about an engine that could not start, each cause once."""

import json
import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.fleet_card import show_fleet, unplaced_rows
from cli.main import app
from cli.plan_card import duration_span
from fleet.fleet_plan import PoolReason, Unplaced, plan_fleet
from fleet.hardware import SharingMode
from fleet.node_pools import NodePool
from fleet.plan_wish import Reason
from fleet.pool_match import Deployment, PlacementOption
from fleet.prices import bundled
from fleet.sharing import SharingWay

L4_BYTES = 22_888 * 1024**2
SHARED = NodePool(name="l4", instance_type="g6.xlarge", sharing=SharingWay.MPS)
DAY = date(2030, 1, 1)


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["plan", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@given(st.lists(st.floats(min_value=1e-4, max_value=1e5), min_size=3, max_size=3).map(sorted))
def test_a_span_of_time_never_shows_a_power_of_ten_and_names_its_unit(values):
    text = duration_span(dict(zip(("low", "mid", "high"), values, strict=True)))
    assert not re.search(r"\de[+-]", text)
    assert (" s " in text) == (values[2] >= 1)


def test_seconds_and_milliseconds_read_as_people_say_them():
    assert duration_span({"low": 1.714, "mid": 4.2, "high": 15.2}) == "1.71-15.2 s (about 4.20)"
    assert duration_span({"low": 0.00525, "mid": 0.00721, "high": 0.1104}) == "5.25-110 ms (about 7.21)"
    assert duration_span(None) == "unknown"


def test_a_plan_that_does_not_fit_shows_no_settings_no_speed_and_no_cost_but_its_json_keeps_them():
    asked = ("--model", "openai/gpt-oss-120b", "--gpu", "L4", "--tp", "1")
    text = shown(*asked)
    for word in ("per output token", "at saturation", "cold start", "$", "settings", "ways to start"):
        assert word not in text
    assert "fits on 4 GPUs" in text
    found = json.loads(shown(*asked, "-o", "json"))
    assert all(found[key] for key in ("latency", "throughput_tokens_per_second", "cost", "cold_start_seconds"))


def test_the_head_names_the_slice():
    asked = ("--model", "Qwen/Qwen3-0.6B", "--gpu", "H100", "--sharing", "mig", "--mig-profile", "2g.20gb")
    text = shown(*asked)
    assert "fits: 1 x H100 2g.20gb as TP1" in text
    assert "one slice, 19.8 GiB visible" in text
    assert "(extrapolated)" in text
    assert "as part of a p5.48xlarge $4.10 an hour (on-demand, priced 2026-Q1, an estimate)" in text


def test_the_constants_have_a_short_name_here_and_their_whole_source_in_the_json():
    asked = ("--model", "Qwen/Qwen3-0.6B", "--gpu", "L4", "--engine-version", "0.19.0")
    assert "note: memory constants measured on vllm 0.19.0\n" in shown(*asked)
    known = json.loads(shown(*asked, "-o", "json"))["memory_constants"]
    assert known["measured_on"] == "0.19.0"
    assert "49 runs" in known["source"]


def test_a_missing_key_is_said_once_and_nobody_says_that_all_were_there(tmp_path: Path):
    config = {"architectures": ["FooForCausalLM"], "model_type": "foo", "hidden_size": 64, "num_attention_heads": 4}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"num_hidden_layers": 2, "vocab_size": 1000}))
    text = shown("--model", str(path), "--gpu", "L4")
    assert text.count("does not state intermediate_size") == 1
    assert "these keys are missing: intermediate_size" in text
    assert "all keys were present" not in text


def test_one_gpu_is_offered_and_two_are_taken():
    found = json.loads(shown("--model", "Qwen/Qwen3-0.6B", "--gpu", "L4", "--gpus", "1", "--tp", "2", "-o", "json"))
    assert found["reasons"][0]["message"] == "TP2 takes 2 GPUs; 1 is offered"


# --- A whole environment ---------------------------------------------------------------------------------------------
def test_what_sharing_saves_and_what_each_replica_takes_is_shown(capsys: pytest.CaptureFixture[str]):
    option = PlacementOption("g6.xlarge", 1, replicas=2, sharing=SharingMode.MPS, memory_bytes=L4_BYTES // 4)
    told = PlacementOption("g6.xlarge", 1, sharing=SharingMode.MPS, memory_bytes=L4_BYTES // 4, memory_share=0.3)
    plan = plan_fleet([Deployment("a", (option,)), Deployment("b", (told,))], [SHARED], prices=bundled(), today=DAY)
    assert {item["deployment"]: item["memory_share"] for item in plan.to_document()["placed"]} == {"a": 0.25, "b": 0.3}
    show_fleet(plan)
    text = capsys.readouterr().out
    assert "25% of a GPU" in text
    assert "30% of a GPU" in text
    assert f"sharing saves {plan.to_document()['totals']['gpus_saved_by_sharing']} GPU" in text


def test_one_cause_of_many_deployments_is_one_row():
    reason = "{} can run on g6.xlarge; the pools have p5.48xlarge"
    unplaced = [
        Unplaced(name, (PoolReason(None, Reason("no-pool", reason.format(name))),)) for name in ("chat", "chat-b")
    ]
    own = Unplaced("c", (PoolReason("h100", Reason("max-nodes", "c needs 2 nodes")),))
    rows = unplaced_rows([*unplaced, own])
    assert [(row["deployment"], row["pool"]) for row in rows] == [("chat, chat-b", "any"), ("c", "h100")]
    assert rows[0]["why"] == reason.format("each")
    assert rows[1]["why"] == "c needs 2 nodes"
    assert all("pool" not in row for row in unplaced_rows(unplaced))


def test_a_folder_that_is_no_environment_of_the_policy_says_what_to_do(tmp_path: Path):
    (tmp_path / "prd").mkdir()
    result = CliRunner().invoke(app, ["plan", "--fleet", str(tmp_path / "prd")])
    assert result.exception.code == 2
    assert "did you mean 'prod'?" in str(result.exception)
    assert "add 'prd' to 'environments' in policies/policy.yaml" in str(result.exception)


# --- Prices of one's own ----------------------------------------------------------------------------------------------
PRICES = "prices: [{instance_type: g6.xlarge, usd_per_hour: 0.5, as_of: 2030-01, source: our contract%s}]\n"


def test_own_prices_count_in_a_plan_with_their_day_and_source(tmp_path: Path):
    path = tmp_path / "mine.yaml"
    path.write_text(PRICES % "")
    asked = ("--model", "Qwen/Qwen3-0.6B", "--instance", "g6.xlarge", "--prices", str(path), "-o", "json")
    cost = json.loads(shown(*asked))["cost"]
    assert (cost["usd_per_hour"], cost["priced_on"], cost["source"]) == (0.5, "2030-01", "our contract")


def test_own_prices_count_in_the_plan_of_an_environment(tmp_path: Path):
    place = tmp_path / "local"
    place.mkdir()
    (place / "pools.yaml").write_text("pools: [{name: l4, instance_type: g6.xlarge}]\n")
    manifest = "kind: InferenceDeployment\nmetadata: {name: small}\n"
    (place / "small.yaml").write_text(f"{manifest}spec: {{workload: embedding, model: {{id: Qwen/Qwen3-0.6B}}}}\n")
    (place / "prices.yaml").write_text(PRICES % "")
    found = json.loads(shown("--fleet", str(place), "-o", "json"))
    assert found["totals"]["usd_per_hour"] == 0.5
    (tmp_path / "mine.yaml").write_text(PRICES.replace("0.5", "0.25") % "")
    found = json.loads(shown("--fleet", str(place), "--prices", str(tmp_path / "mine.yaml"), "-o", "json"))
    assert found["totals"]["usd_per_hour"] == 0.25


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PRICES.replace("as_of: 2030-01, ", "") % "", "/prices/0/as_of"),
        (PRICES % ", purchse: spot", "did you mean 'purchase'?"),
        ("- 1", "expected a mapping"),
    ],
)
def test_prices_that_can_not_be_read_are_a_usage_error(tmp_path: Path, text: str, said: str):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    result = CliRunner().invoke(app, ["plan", "--model", "Qwen/Qwen3-0.6B", "--prices", str(path)])
    assert result.exception.code == 2
    assert said in str(result.exception)


def test_a_way_of_buying_that_nobody_sells_is_a_usage_error():
    result = CliRunner().invoke(app, ["plan", "--model", "Qwen/Qwen3-0.6B", "--purchase", "spott"])
    assert result.exception.code == 2
    assert "did you mean 'spot'?" in str(result.exception)
