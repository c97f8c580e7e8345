"""The questions of ``planner_peers.py``: models and placements with what was measured, and our own answers to them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner_facts import VERSION_BOUND, Facts, Row, class_of, wish_of

from fleet import model_catalogue
from fleet.hardware import BYTES_PER_GIB, gpu
from fleet.kv_cache import indexer_bytes_per_token, sequence_bytes_of_rank
from fleet.model import Missing, Model
from fleet.model_reading import read_model
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import figures_of
from fleet.plan_wish import PlanWish
from fleet.planner import plan
from fleet.weights import parameters_total, weights_bytes_total

LONG_TOKENS = 32768
PRECISION = "bf16"
WEIGHTS = (
    ("meta-llama/Meta-Llama-3.1-8B", "bf16", 1, 0, 14.99, "start-up log"),
    ("Qwen/Qwen3-32B", "bf16", 1, 0, 61.03, "start-up log"),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "fp8", 1, 0, 67.72, "start-up log"),
    ("openai/gpt-oss-120b", "mxfp4", 1, 0, 64.38, "start-up log"),
    ("meta-llama/Llama-3.3-70B-Instruct", "bf16", 4, 0, 131.42 / 4, "checkpoint / 4"),
    ("deepseek-ai/DeepSeek-V3", "fp8", 8, 8, 641.30 / 8, "checkpoint / 8"),
    ("Qwen/Qwen3.5-397B-A17B-GPTQ-Int4", "gptq", 4, 4, 219.56 / 4, "checkpoint / 4"),
    ("Qwen/Qwen3.6-27B", "bf16", 1, 0, 51.75, "checkpoint"),
)
"""Model, precision, TP, EP, GiB on a GPU, and what says so (tests/data: memory.csv, checkpoint_sizes.csv)."""
CACHES = (
    "meta-llama/Meta-Llama-3.1-70B",
    "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-V3",
    "moonshotai/Kimi-K2-Instruct",
    "zai-org/GLM-5-FP8",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "ai21labs/Jamba-v0.1",
    "nvidia/Nemotron-H-56B-Base-8K",
    "google/gemma-2-9b-it",
    "google/gemma-4-26B-A4B",
    "openai/gpt-oss-120b",
    "Qwen/Qwen3-VL-8B-Instruct",
    "openai/whisper-large-v3-turbo",
)
"""Dense, mixtures of experts, MLA, hybrid, sliding windows, nested configurations, encoder-decoder."""
NAMED = (
    ("Qwen/Qwen3-235B-A22B-FP8", "fp8", "H100", 8, 0, "no", "192 is no multiple of the FP8 block, experts split by TP"),
    ("Qwen/Qwen3-235B-A22B-FP8", "fp8", "H100", 8, 8, "yes", "the same with whole experts"),
    ("Qwen/Qwen2.5-7B-Instruct", "bf16", "H100", 8, 0, "no", "28 heads"),
    ("LGAI-EXAONE/EXAONE-4.0-32B", "bf16", "H100", 16, 0, "no", "40 heads"),
    ("deepseek-ai/DeepSeek-V4-Flash", "fp8", "A100-80", 8, 0, "no", "no kernels for the A100"),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "fp8", "H100", 1, 0, "no", "log: no room for the cache"),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "fp8", "H100", 2, 0, "yes", "log"),
    ("meta-llama/Llama-3.3-70B-Instruct", "bf16", "H100", 1, 0, "no", "131 GiB"),
    ("Qwen/Qwen3-32B", "bf16", "H100", 1, 0, "yes", "log: 4.45 GiB of cache"),
    ("openai/gpt-oss-120b", "mxfp4", "L4", 1, 0, "no", "61 GiB"),
    ("Qwen/Qwen3-30B-A3B", "bf16", "L4", 1, 0, "no", "57 GiB"),
    ("deepseek-ai/DeepSeek-R1", "fp8", "H200", 8, 0, "yes", "served"),
)
"""Model, precision, GPU, TP, EP, verdict, why; 8,192 tokens."""


@dataclass(frozen=True)
class Case:
    """A question with its true answer."""

    title: str
    truth: float | str
    source: str
    question: dict[str, Any]
    ours: float | str | None
    """``None`` = unknown."""


class Questions:
    """Cases over models whose configurations are written into a folder, one folder a model, as planners read them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def weights(self) -> Iterator[Case]:
        """Bytes of weights on one GPU."""
        for model_id, precision, tensor, expert, gib, source in WEIGHTS:
            model, wish = _model(model_id), PlanWish(gpu="H200", tensor=tensor, expert=expert or None)
            question = self._question("weights", model_id, precision, wish, model)
            item = ParallelPlan(tensor=tensor, expert=expert)
            ours = figures_of(model, precision, "auto").rank_weights(item, with_mtp=True)
            title = f"{model_id} {precision}, TP{tensor}{f' EP{expert}' if expert else ''} ({class_of(model)})"
            yield Case(title, gib * BYTES_PER_GIB, source, question, _known(ours))

    def caches(self, facts: Facts) -> Iterator[Case]:
        """Bytes that one more token takes in a long sequence, in bf16."""
        expected = {row["model"]: row for row in facts.caches}
        for model_id in CACHES:
            model, tokens = _model(model_id), LONG_TOKENS
            tokens = min(tokens, model.max_context_tokens or tokens)
            wish = PlanWish(gpu="H200", tensor=1, context_tokens=tokens)
            question = self._question("cache", model_id, PRECISION, wish, model)
            row = expected[model_id]
            sliding = f", and {row['sliding_bytes_per_token_bf16']} in windows" if row["window"] else ""
            yield Case(
                f"{model_id} ({class_of(model)})",
                float(row["kv_bytes_per_token_bf16"]),
                f"layers that keep every token{sliding}",
                question,
                _growth(model, tokens),
            )

    def named(self) -> Iterator[Case]:
        """Verdicts that planners are known to miss."""
        for model_id, precision, name, tensor, expert, truth, source in NAMED:
            wish = PlanWish(
                gpu=name,
                gpus=tensor,
                tensor=tensor,
                expert=expert or None,
                quantization=precision,
                context_tokens=8192,
            )
            title = f"{model_id} {precision} on {tensor}x {name}, TP{tensor}{f' EP{expert}' if expert else ''}"
            yield self._verdict(title, model_id, precision, wish, truth, source)

    def placements(self, facts: Facts) -> Iterator[Case]:
        """Every placement that was served or failed."""
        for row in facts.placements:
            if row["works"] not in ("yes", "no") or row["model"] in VERSION_BOUND or not _is_known(row):
                continue
            wish = wish_of(row)
            yield self._verdict(row["model"], row["model"], wish.quantization, wish, row["works"], row["reason"])

    def _verdict(
        self, title: str, model_id: str, precision: str | None, wish: PlanWish, truth: str, source: str
    ) -> Case:
        model = _model(model_id)
        question = self._question("verdict", model_id, precision or PRECISION, wish, model)
        return Case(title, truth, source, question, plan(model, wish).fits)

    def _question(self, ask: str, model_id: str, precision: str, wish: PlanWish, model: Model) -> dict[str, Any]:
        item = wish.explicit_plan
        return {
            "ask": ask,
            "config": str(self._written(model_id, precision)),
            "precision": precision,
            "tp": item.tensor,
            "pp": item.pipeline,
            "dp": item.data,
            "ep": item.expert,
            "gpus": item.gpus,
            "gpu_gib": (gpu(wish.gpu or "H200").memory_bytes or 0) / BYTES_PER_GIB,
            "context": wish.context_of(model),
            "utilization": wish.gpu_memory_utilization,
            "granted_bytes": _known(weights_bytes_total(model, precision)),
            "granted_parameters": _known(parameters_total(model)),
        }

    def _written(self, model_id: str, precision: str) -> Path:
        """Its configuration as a folder, with the dtype that published ones state, and no precision but the asked."""
        folder = self._folder / precision / model_id
        if not folder.is_dir():
            folder.mkdir(parents=True)
            config = {key: value for key, value in _config(model_id).items() if key != "_hf_quant_config"}
            config = {"torch_dtype": "bfloat16", **config}
            if precision == "bf16":
                config.pop("quantization_config", None)
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return folder


def _config(model_id: str) -> dict[str, Any]:
    known = model_catalogue.find(model_id)
    if known is None:
        raise KeyError(model_id)
    return dict(known.config)


def _model(model_id: str) -> Model:
    return read_model(_config(model_id), id=model_id)


def _growth(model: Model, tokens: int) -> float | None:
    """Bytes of a token in the second half of a sequence, the indexer of sparse attention apart as in the table."""
    long, half = (sequence_bytes_of_rank(model, ParallelPlan(), PRECISION, count) for count in (tokens, tokens // 2))
    if isinstance(long, Missing) or isinstance(half, Missing):
        return None
    return (long - half) / (tokens - tokens // 2) - (indexer_bytes_per_token(model) or 0)


def _is_known(row: Row) -> bool:
    return model_catalogue.find(row["model"]) is not None and bool(row["tp"])


def _known(figure: int | Missing) -> int | None:
    return None if isinstance(figure, Missing) else figure
