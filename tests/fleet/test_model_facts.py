"""Published models: checkpoint sizes, KV bytes per token and parameter counts against what others measured or state."""

import csv
import json
import sys
import time
from pathlib import Path

import pytest

from fleet.kv_cache import kv_bytes_per_token, kv_sliding
from fleet.model import Missing, Model
from fleet.model_config import read_config
from fleet.model_reading import read_model
from fleet.weights import bytes_by_part, parameters_active, parameters_total, weights_bytes_total

GIB = 1024**3
DATA = Path(__file__).resolve().parents[1] / "data" / "models"
MEASURED = Path(__file__).resolve().parents[3] / "shared" / "models"
PRECISIONS = {"": "bf16", "fp8": "fp8", "gptq": "gptq", "mxfp4": "mxfp4", "nvfp4": "nvfp4", "awq": "awq"}
CONFIGS = sorted(path.name for path in (DATA / "configs").glob("*.json"))


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def model_of(config: str, folder: Path = DATA / "configs") -> Model:
    return read_model(read_config((folder / config).read_bytes(), source=config), id=config)


def say(capsys: pytest.CaptureFixture[str], line: str) -> None:
    """Show a figure even when everything passes."""
    with capsys.disabled():
        sys.stdout.write(f"\n{line}\n")


def off_by(row: dict[str, str], model: Model) -> float:
    """Percent by which the counted size differs from the published one."""
    counted = weights_bytes_total(model, PRECISIONS[row["quant"]])
    assert not isinstance(counted, Missing), counted
    return 100 * (counted / GIB / float(row["checkpoint_gib"]) - 1)


def tolerance(quant: str) -> float:
    return 6.0 if quant == "mxfp4" else 2.0


def test_checkpoints_have_their_published_size(capsys):
    table = [(row["model"], row["quant"], off_by(row, model_of(row["config"]))) for row in rows("checkpoint_sizes.csv")]
    say(capsys, f"checkpoint sizes: {len(table)} rows, largest difference {max(abs(off) for *_, off in table):.2f} %")
    assert len(table) >= 13
    assert not [row for row in table if abs(row[2]) > tolerance(row[1])]


def test_further_shapes_have_their_published_size(capsys):
    shapes = json.loads((DATA / "shapes.json").read_text(encoding="utf-8"))
    found = []
    for shape in shapes:
        counted = weights_bytes_total(read_model(shape["config"], id=shape["model"]), shape["quant"] or None)
        assert not isinstance(counted, Missing), counted
        found.append((shape["model"], 100 * (counted / GIB / shape["checkpoint_gib"] - 1)))
    say(capsys, f"further shapes: {len(found)} rows, largest difference {max(abs(off) for _, off in found):.2f} %")
    assert not [row for row in found if abs(row[1]) > tolerance("")]


def test_other_architectures_have_the_parameters_that_their_cards_state(capsys):
    shapes = json.loads((DATA / "totals.json").read_text(encoding="utf-8"))
    found = []
    for shape in shapes:
        counted = parameters_total(read_model(shape["config"], id=shape["model"]))
        assert not isinstance(counted, Missing), counted
        found.append((shape["model"], 100 * (counted / 1e9 / shape["total_billions"] - 1)))
    say(capsys, f"further totals: {len(found)} models, largest difference {max(abs(off) for _, off in found):.2f} %")
    assert not [row for row in found if abs(row[1]) > 0.5]


def kv_of(model: Model) -> tuple[str, str, str]:
    """The figures as the table writes them: nothing where they are not known."""
    full, sliding = kv_bytes_per_token(model, "bf16"), kv_sliding(model, "bf16")
    per_window = (str(sliding.bytes_per_token), str(sliding.window_tokens)) if sliding else ("", "")
    return ("" if isinstance(full, Missing) else str(full), *per_window)


def test_kv_bytes_per_token_are_exact_or_unknown(capsys):
    table = rows("kv_per_token.csv")
    wrong = [
        (row["model"], figures)
        for row in table
        if (figures := kv_of(model_of(row["config"])))
        != (row["kv_bytes_per_token_bf16"], row["sliding_bytes_per_token_bf16"], row["window"])
    ]
    say(capsys, f"KV bytes per token: {len(table)} rows, {len(wrong)} wrong")
    assert len(table) >= 49
    assert not wrong


@pytest.mark.parametrize("row", rows("published_totals.csv"), ids=lambda row: row["config"].removesuffix(".json"))
def test_parameters_are_those_of_the_model_card(row):
    model = model_of(row["config"])
    for counted, stated in ((parameters_total(model), "total"), (parameters_active(model), "active")):
        assert not isinstance(counted, Missing)
        assert counted / 1e9 == pytest.approx(
            float(row[f"{stated}_billions"]), rel=float(row["tolerance_percent"]) / 100
        )


@pytest.mark.parametrize("config", CONFIGS)
def test_every_configuration_is_read_as_an_architecture_known_by_name(config):
    model = model_of(config)
    assert not model.is_generic
    assert sum(bytes_by_part(model).values()) > 0
    assert len(model.layers) > 0
    lacking = {missing.figure: missing.key for missing in model.missing}
    assert lacking == {
        "ibm-granite--granite-4.0-h-1b.json": {"weights": "num_local_experts"},
        "deepseek-ai--DeepSeek-V4-Flash.json": {"kv": "compress_ratios"},
        "meta-llama--Llama-4-Scout-17B-16E-Instruct.json": {"tower": "vision_config"},
    }.get(config, {})


def test_a_configuration_is_read_and_counted_in_a_moment():
    for config in CONFIGS:
        text = (DATA / "configs" / config).read_bytes()
        best = 1.0
        for _ in range(3):
            started = time.process_time()
            model = read_model(read_config(text, source=config), id=config)
            weights_bytes_total(model)
            best = min(best, time.process_time() - started)
        assert best < 0.2, config  # 0.05 on a quiet machine


@pytest.mark.skipif(
    not MEASURED.is_dir(), reason="the collected facts stand beside the checkout only where it was made"
)
def test_the_collected_facts_hold_as_well(capsys):
    with (MEASURED / "aliases.csv").open(encoding="utf-8", newline="") as lines:
        config_of = {row["model"]: row["config"] for row in csv.DictReader(lines)}
    with (MEASURED / "checkpoint_sizes.csv").open(encoding="utf-8", newline="") as lines:
        sizes = [row for row in csv.DictReader(lines) if row["model"] in config_of]
    with (MEASURED / "expected.csv").open(encoding="utf-8", newline="") as lines:
        expected = [row for row in csv.DictReader(lines) if row["model"] in config_of]
    wrong_sizes = [
        row["model"]
        for row in sizes
        if abs(off_by(row, model_of(config_of[row["model"]], MEASURED))) > tolerance(row["quant"])
    ]
    wrong_kv = [
        row["model"]
        for row in expected
        if kv_of(model_of(config_of[row["model"]], MEASURED))[:2]
        != (row["kv_bytes_per_token_bf16"], row["sliding_bytes_per_token_bf16"])
    ]
    say(capsys, f"collected facts: {len(sizes)} sizes, {len(expected)} KV figures")
    assert not wrong_sizes + wrong_kv
