"""The measured points of latency and throughput: read as rows, and copied from the collected tables."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fleet.hardware import UnknownHardware, gpu
from fleet.latency_model import work_of
from fleet.latency_work import Load, StepWork, step_work
from fleet.model import LatentAttention, Missing, Model
from fleet.model_catalogue import find
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "latency"
ENGINES = {"trtllm": "tensorrt-llm"}
QUANTIZATIONS = {"fp8_block": "fp8", "": "bf16", "FP8": "fp8", "FP4": "nvfp4", "BF16": "bf16"}
SHAPES = {"Qwen/Qwen3-235B-A22B": "Qwen/Qwen3-235B-A22B-FP8"}
"""Names of the tables that the catalogue lacks, with the one of the same shape."""
STORED_ONLY_AS = {"openai/gpt-oss-120b": "mxfp4", "openai/gpt-oss-20b": "mxfp4"}
"""Checkpoints that exist in one encoding, whatever a row calls it."""


@dataclass(frozen=True)
class Row:
    """One measured point of latency."""

    shape: str
    """The configuration; models that share it are one group."""
    quantization: str
    gpu: str
    engine: str
    engine_version: str
    plan: ParallelPlan
    load: Load
    ttft_seconds: float
    tpot_seconds: float
    is_unclear: bool

    @property
    def kind(self) -> str:
        """The kind of model."""
        return kind_of(self.shape)

    def work(self) -> StepWork | None:
        """Its work on its GPU; ``None`` where the GPU's figures are not known."""
        return work_on(self.shape, self.quantization, self.plan, self.gpu, self.load)


@dataclass(frozen=True)
class SaturatedRow:
    """One measured throughput."""

    shape: str
    quantization: str
    kv_dtype: str
    gpu: str
    plan: ParallelPlan
    input_tokens: int
    output_tokens: int
    tokens_per_second_per_gpu: float

    @property
    def kind(self) -> str:
        """The kind of model."""
        return kind_of(self.shape)


def kind_of(shape: str) -> str:
    """Dense, mixture of experts, mixture of experts with latent attention."""
    model = model_of(shape)
    if model.experts is None:
        return "dense"
    return "experts, latent" if any(isinstance(one, LatentAttention) for one in model.attentions) else "experts"


@cache
def model_of(shape: str) -> Model:
    """The model of a configuration in the catalogue."""
    known = find(shape)
    if known is None:
        raise KeyError(shape)
    return read_model(known.config, id=shape)


def work_on(shape: str, quantization: str, plan: ParallelPlan, gpu_name: str, load: Load) -> StepWork | None:
    """The work of a plan, or ``None`` where the GPU or its bandwidth is not known."""
    try:
        hardware = gpu(gpu_name)
    except UnknownHardware:
        return None
    found = step_work(work_of(model_of(shape), quantization), plan, hardware, load)
    return None if isinstance(found, Missing) else found


def latency_rows(folder: Path = FOLDER) -> Iterator[Row]:
    """The copied points of latency."""
    for row in _table(folder / "latency.csv"):
        yield Row(
            shape=row["shape"],
            quantization=row["quantization"],
            gpu=row["gpu"],
            engine=row["engine"],
            engine_version=row["engine_version"],
            plan=ParallelPlan(int(row["tensor"]), 1, int(row["data"]), int(row["expert"])),
            load=Load(int(row["concurrency"]), int(row["input_tokens"]), int(row["output_tokens"])),
            ttft_seconds=float(row["ttft_seconds"]),
            tpot_seconds=float(row["tpot_seconds"]),
            is_unclear=row["unclear"] == "yes",
        )


def saturated_rows(folder: Path = FOLDER) -> Iterator[SaturatedRow]:
    """The copied points of throughput."""
    for row in _table(folder / "throughput.csv"):
        yield SaturatedRow(
            shape=row["shape"],
            quantization=row["quantization"],
            kv_dtype=row["kv_dtype"],
            gpu=row["gpu"],
            plan=ParallelPlan(int(row["tensor"]), 1, int(row["data"]), int(row["expert"])),
            input_tokens=int(row["input_tokens"]),
            output_tokens=int(row["output_tokens"]),
            tokens_per_second_per_gpu=float(row["tokens_per_second_per_gpu"]),
        )


def copy_tables(source: Path, folder: Path = FOLDER) -> None:
    """Copies the collected tables in the words of this project; rows of models without a configuration stay out."""
    _write(folder / "latency.csv", [_copied_latency(row) for row in _table(source / "latency_measured.csv")])
    rows = [_copied_throughput(row) for row in _table(source / "throughput_measured.csv")]
    _write(folder / "throughput.csv", [row for row in rows if row])


def _copied_latency(row: dict[str, str]) -> dict[str, str]:
    shape = _shape(row["model"])
    tensor, batch = int(row["tp"]), int(row["batch_per_dp_rank"])
    expert_ranks = int(row["moe_tp"]) * int(row["moe_ep"])
    data = max(int(row["attention_dp"]), expert_ranks // tensor if model_of(shape).experts else 1)
    seen = re.search(r"_c(\d+)_", row["id"])
    measured = re.search(r"measured=([\d-]{10})", row["measured_by"])
    concurrency = batch * data
    return {
        "shape": shape,
        "quantization": STORED_ONLY_AS.get(shape) or QUANTIZATIONS.get(row["gemm_quant"], row["gemm_quant"]),
        "gpu": row["gpu"],
        "engine": ENGINES.get(row["engine"], row["engine"]),
        "engine_version": row["engine_version"],
        "tensor": str(tensor),
        "data": str(data),
        "expert": row["moe_ep"] if int(row["moe_ep"]) > 1 else "0",
        "input_tokens": row["isl"],
        "output_tokens": row["osl"],
        "concurrency": str(concurrency),
        "ttft_seconds": f"{float(row['ttft_ms']) / 1000:.5g}",
        "tpot_seconds": f"{float(row['tpot_ms']) / 1000:.5g}",
        "measured_on": measured[1] if measured else "",
        "unclear": "yes" if seen and concurrency not in (int(seen[1]), int(seen[1]) * data) else "",
        "id": row["id"],
    }


def _copied_throughput(row: dict[str, str]) -> dict[str, str]:
    if find(SHAPES.get(row["model"], row["model"])) is None:
        return {}
    shape = _shape(row["model"])
    # These are NVIDIA's own checkpoints, whose configurations ask for an fp8 cache; those of OpenAI do not.
    size = int(row["parallel"].removeprefix("DEP").removeprefix("TP"))
    shares_experts = row["parallel"].startswith("DEP")
    return {
        "shape": shape,
        "quantization": STORED_ONLY_AS.get(shape) or QUANTIZATIONS[row["precision"]],
        "kv_dtype": "auto" if shape in STORED_ONLY_AS else "fp8",
        "gpu": row["gpu"],
        "tensor": "1" if shares_experts else str(size),
        "data": str(size) if shares_experts else "1",
        "expert": str(size) if shares_experts else "0",
        "input_tokens": row["isl"],
        "output_tokens": row["osl"],
        "tokens_per_second_per_gpu": row["output_tok_s_per_gpu"],
    }


def _shape(name: str) -> str:
    known = find(SHAPES.get(name, name))
    if known is None:
        raise KeyError(name)
    return SAME_SHAPE.get(known.shape_of or known.id, known.shape_of or known.id)


SAME_SHAPE = {"deepseek-ai/DeepSeek-V3": "deepseek-ai/DeepSeek-R1"}
"""Two configurations that are the same but for their name: one group."""


def _table(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def _write(path: Path, rows: Sequence[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
