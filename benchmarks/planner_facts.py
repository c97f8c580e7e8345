"""What others measured of models, placements and start-ups: the collected tables, or the copies in ``tests/data``."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fleet import model_catalogue
from fleet.memory_constants import ModelClass
from fleet.model import LatentAttention, LinearState, Model, SlidingAttention
from fleet.model_config import read_config
from fleet.model_reading import read_model
from fleet.plan_wish import PlanWish

Row = Mapping[str, str]
ROOT = Path(__file__).resolve().parents[1]
COLLECTED = ROOT.parent / "shared" / "models"
COPIED = ROOT / "tests" / "data"
ENGINES = {"trtllm": "tensorrt-llm"}
PRECISIONS = {
    "bf16": "bf16",
    "fp16": "bf16",
    "fp8": "fp8",
    "fp4": "nvfp4",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "int4": "int4",
    "int4-awq": "awq",
}
STORED = {"": "bf16", "fp8": "fp8", "gptq": "gptq", "mxfp4": "mxfp4", "nvfp4": "nvfp4", "awq": "awq", "int4": "int4"}
"""Precisions as the table of checkpoint sizes spells them; another one is the checkpoint's own."""
ARITHMETIC = frozenset(
    {
        "heads-divisible",
        "kv-heads-divisible",
        "experts-divisible",
        "fp8-block",
        "quantisation-group",
        "compute-capability",
        "mig",
    }
)
RULE_OF = (
    ("heads not divisible", "heads-divisible"),
    ("not divisible by block", "fp8-block"),
    ("groups", "quantisation-group"),
    ("kernels", "compute-capability"),
    ("Blackwell-only", "compute-capability"),
    ("KV", "memory"),
    ("OOM", "memory"),
)
"""Words of a row's reason and the rule that says the same."""
VERSION_BOUND = frozenset({"meta-llama/Meta-Llama-3.1-405B-Instruct-FP8", "TheBloke/Llama-2-70B-AWQ"})
"""Failures of vLLM 0.5 and 0.2.7, which later versions do not have. The first one (vllm#6746: prefill was not chunked)
also keeps attention and two layers in bf16, which the configuration of its shape does not say."""


@dataclass(frozen=True)
class Facts:
    """The tables, rows of models with a configuration alone."""

    name: str
    configs: Mapping[str, Path]
    """Of the models that rows name; others are looked up in the catalogue."""
    sizes: Sequence[Row]
    caches: Sequence[Row]
    start_ups: Sequence[Row]
    placements: Sequence[Row]
    divisions: Sequence[Row]

    def model(self, row: Row) -> Model:
        """The model of a row."""
        path = self.configs.get(row["model"])
        return _of_catalogue(row["model"]) if path is None else _of_file(path, row["model"])


def facts_at_hand(*, is_copied: bool = False) -> Facts:
    """The collected tables where they are, else the copies."""
    return _copies() if is_copied or not COLLECTED.is_dir() else _collected()


def class_of(model: Model) -> str:
    """How a model keeps its tokens, and whether it has experts."""
    kinds = {type(attention) for attention in model.attentions}
    parts = [name for kind, name in ((LinearState, "hybrid"), (LatentAttention, "MLA")) if kind in kinds]
    parts += ["sliding"] if SlidingAttention in kinds else []
    parts += ["MoE"] if model.experts else []
    if ModelClass.of(model) is ModelClass.MULTIMODAL:
        parts.append("multimodal")
    return " ".join(parts) or "dense"


def precision_of(quant: str) -> str | None:
    """The precision of a checkpoint; ``None`` = as its configuration says."""
    return STORED.get(quant)


def rule_of(reason: str) -> str | None:
    """The rule that a row's reason stands for."""
    return next((rule for words, rule in RULE_OF if words in reason), None)


def wish_of(row: Row) -> PlanWish:
    """What a placement ran with."""
    quantization = PRECISIONS.get(row["precision"])
    if "gpt-oss" in row["model"] and row["precision"] == "fp4":
        quantization = "mxfp4"
    return PlanWish(
        gpu="B300" if row["gpu"] == "any" else row["gpu"],
        gpus=_number(row, "gpu_count"),
        tensor=_number(row, "tp"),
        pipeline=_number(row, "pp"),
        expert=_number(row, "ep"),
        data=_number(row, "dp"),
        engine=ENGINES.get(row["engine"], row["engine"]),
        engine_version=row["engine_version"] or None,
        quantization=quantization,
        context_tokens=_number(row, "max_model_len"),
        gpu_memory_utilization=float(row["gpu_memory_utilization"]) if row["gpu_memory_utilization"] else None,
    )


def start_up_wish(row: Row) -> PlanWish:
    """What an engine was started with."""
    return PlanWish(
        gpu=row["gpu"],
        gpus=_number(row, "tp"),
        tensor=_number(row, "tp"),
        engine_version="0.11.0" if "vLLM ~0.11" in row["source"] else None,
        context_tokens=_number(row, "max_model_len"),
        gpu_memory_utilization=float(row["gpu_memory_utilization"]),
        quantization=PRECISIONS[row["precision"]],
    )


def _number(row: Row, key: str) -> int | None:
    return int(row[key]) if row[key] else None


def _collected() -> Facts:
    configs = {row["model"]: COLLECTED / row["config"] for row in _table(COLLECTED / "aliases.csv")}
    tables = {
        name: [row for row in _table(COLLECTED / f"{name}.csv") if row["model"] in configs]
        for name in ("checkpoint_sizes", "expected", "memory_measured", "placements")
    }
    return Facts(
        "../shared/models",
        configs,
        sizes=tables["checkpoint_sizes"],
        caches=tables["expected"],
        start_ups=tables["memory_measured"],
        placements=tables["placements"],
        divisions=tables["expected"],
    )


def _copies() -> Facts:
    models, placements = COPIED / "models", COPIED / "placements"
    sizes, caches = _table(models / "checkpoint_sizes.csv"), _table(models / "kv_per_token.csv")
    return Facts(
        "tests/data",
        {row["model"]: models / "configs" / row["config"] for row in (*sizes, *caches)},
        sizes=sizes,
        caches=caches,
        start_ups=_table(placements / "memory.csv"),
        placements=_table(placements / "placements.csv"),
        divisions=_table(placements / "divisions.csv"),
    )


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


@cache
def _of_file(path: Path, model_id: str) -> Model:
    return read_model(read_config(path.read_bytes(), source=path.name), id=model_id)


@cache
def _of_catalogue(model_id: str) -> Model:
    known = model_catalogue.find(model_id)
    if known is None:
        raise KeyError(model_id)
    return read_model(known.config, id=model_id)
