"""Asks one public planner the questions of ``planner_peers.py``; runs in the planners' own environment, not in ours.

Reads a list of questions from stdin, writes a list of answers: ``{"value": ...}`` or ``{"cannot": reason}``. Knows
nothing of this project, imports each planner by name, and is as kind to it as can be: visible memory as measured, sizes
that it would fetch from a model hub are handed to it for caches and verdicts (``granted_bytes``).
"""

import contextlib
import functools
import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

Question = Mapping[str, Any]
GIB = 1024**3
FOUR_BITS = ("awq", "gptq", "int4", "mxfp4", "nvfp4")
UTILIZATION = 0.9


class CannotAnswer(Exception):
    """The planner has no way to say it."""


def main() -> None:
    """Answer every question; what a planner prints itself is dropped."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    ask = PEERS[sys.argv[1]]
    questions = json.load(sys.stdin)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        answers = [answer(ask, question) for question in questions]
    json.dump(answers, sys.stdout)


def answer(ask: Callable[[Question], float | str], question: Question) -> dict[str, Any]:
    """A value, or the reason why there is none."""
    try:
        return {"value": ask(question)}
    except CannotAnswer as error:
        return {"cannot": str(error)}
    except Exception as error:
        return {"cannot": f"{type(error).__name__}: {error}"}


def growth(of_tokens: Callable[[int], float], question: Question) -> float:
    """Bytes that a token adds in the second half of a long sequence: windows are full, states don't grow."""
    tokens: int = question["context"]
    return (of_tokens(tokens) - of_tokens(tokens // 2)) / (tokens - tokens // 2)


def one_replica_of_tensor_ranks(question: Question) -> None:
    """Refuse what a planner with nothing but tensor parallelism can't say."""
    if question["pp"] > 1 or question["dp"] > 1:
        raise CannotAnswer("has neither pipeline nor data parallelism")


# --- vllm-wizard ---------------------------------------------------------------------------------------------------
def ask_vllm_wizard(question: Question) -> float | str:
    """Through the functions of its own ``plan``; 4-bit formats that it does not know are its AWQ."""
    inputs = importlib.import_module("vllm_wizard.schemas.inputs")
    memory = importlib.import_module("vllm_wizard.planning.memory")
    metadata = importlib.import_module("vllm_wizard.models.metadata").load_model_metadata(question["config"])
    known = {"bf16": "none", "fp8": "fp8", "int8": "int8", "gptq": "gptq"} | dict.fromkeys(FOUR_BITS, "awq")
    quantization = inputs.Quantization(known[question["precision"]])
    if question["ask"] == "weights":
        parameters = metadata.num_params / 1e9
        weights: int = memory.compute_weights_memory(parameters, inputs.DType.BF16, quantization)
        return weights / int(question["tp"])
    if question["ask"] == "cache":
        return growth(
            lambda tokens: memory.compute_kv_cache_memory(metadata, tokens, 1, fragmentation_factor=1.0), question
        )
    one_replica_of_tensor_ranks(question)
    request = inputs.PlanRequest(
        model=inputs.ModelInput(model=question["config"], quantization=quantization, max_model_len=question["context"]),
        hardware=inputs.HardwareInput(
            gpu="measured", vram_gb=question["gpu_gib"], gpus=question["gpus"], tensor_parallel_size=question["tp"]
        ),
        policy=inputs.PolicyInput(gpu_memory_utilization=question["utilization"] or UTILIZATION),
    )
    planned = importlib.import_module("vllm_wizard.planning.planner").run_plan(request)
    return "yes" if planned.feasibility.fits else "no"


# --- llm-d-planner -------------------------------------------------------------------------------------------------
def ask_llm_d_planner(question: Question) -> float | str:
    """Its capacity functions on a local configuration."""
    capacity = importlib.import_module("planner.capacity_planner")
    if question["ask"] == "weights":
        raise CannotAnswer("reads sizes from the model hub alone")
    config = importlib.import_module("transformers").AutoConfig.from_pretrained(question["config"])
    if question["ask"] == "cache":
        return growth(lambda tokens: capacity.KVCacheDetail("", config, tokens).per_request_kv_cache_bytes, question)
    if question["tp"] not in capacity.find_possible_tp(config):
        return "no"
    vars(capacity)["model_memory_req"] = lambda *_given, **_named: question["granted_bytes"] / GIB
    room = capacity.allocatable_kv_cache_memory(
        "",
        config,
        question["gpu_gib"],
        question["utilization"] or UTILIZATION,
        tp=question["tp"],
        pp=question["pp"],
        dp=question["dp"],
    )
    return "yes" if room >= capacity.kv_cache_req("", config, question["context"]) > 0 else "no"


# --- vramscout -----------------------------------------------------------------------------------------------------
def ask_vramscout(question: Question) -> float | str:
    """Its ``plan_modern`` in vLLM mode."""
    planner = importlib.import_module("vramscout.modern_v07")
    inspection = importlib.import_module("vramscout.modern_v06")
    is_granted = question["ask"] != "weights"
    sizes = (question["granted_parameters"], question["granted_bytes"]) if is_granted else (None, None)
    vars(inspection)["_selected_hub_metadata"] = lambda *_given: sizes
    precision = {"mxfp4": "nvfp4", "awq": "int4", "gptq": "int4"}.get(question["precision"], question["precision"])
    is_cache = question["ask"] == "cache"
    planned = functools.partial(
        planner.plan_modern,
        question["config"],
        weight_dtype=precision,
        kv_dtype="bf16" if is_cache else "auto",
        tp=1 if is_cache else question["tp"],
        vram_gib=question["gpu_gib"],
        engine="vllm",
        gpu_memory_utilization=question["utilization"] or UTILIZATION,
    )
    if question["ask"] == "weights":
        return float(planned(context=question["context"]).parts_gib["Model weights / rank"]) * GIB
    if question["ask"] == "cache":
        return growth(lambda tokens: state_bytes(planned(context=tokens).parts_gib), question)
    one_replica_of_tensor_ranks(question)
    return "yes" if planned(context=question["context"]).fits else "no"


def state_bytes(parts: Mapping[str, float]) -> float:
    """What it keeps per sequence, without its correction for an engine's page layout."""
    apart = ("Model weights / rank", "CUDA / runtime", "Prefill scratch", "Safety reserve")
    return GIB * sum(size for name, size in parts.items() if name not in apart and "calibration" not in name)


# --- llm-mem-planner -----------------------------------------------------------------------------------------------
def ask_llm_mem_planner(question: Question) -> float | str:
    """The functions of its command; its tensor parallelism spans all ranks, data parallelism is a part of it."""
    planner = importlib.import_module("llm_mem_planner.cli")
    with open(os.path.join(question["config"], "config.json"), encoding="utf-8") as file:
        sizes = planner.load_dims(json.load(file))
    parameters = planner.estimate_params(sizes)
    bytes_each = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0} | dict.fromkeys(FOUR_BITS, 0.5)
    width, ranks = bytes_each[question["precision"]], question["tp"] * question["dp"]
    if question["ask"] == "weights":
        parallel = planner.Parallelism(tp=ranks, dp=question["dp"], ep=max(1, question["ep"]))
        return float(planner.estimate_weight_params_per_rank(sizes, parameters, parallel).total) * width
    if question["ask"] == "cache":
        return growth(
            lambda tokens: GIB * planner.estimate_kv_cache_gib(sizes, batch=1, seq_len=tokens, kv_dtype_bytes=2),
            question,
        )
    if question["pp"] > 1:
        raise CannotAnswer("has no pipeline parallelism")
    found, _ = planner.recommend_parallelism(
        sizes,
        parameters,
        hw=planner.HardwareSpec(1, ranks, question["gpu_gib"], question["utilization"] or UTILIZATION),
        seq_len=question["context"],
        global_batch=question["dp"],
        weight_dtype_bytes=width,
        kv_dtype_bytes=2,
        act_dtype_bytes=2,
        chunked_prefill_size=8192,
        ep=max(1, question["ep"]),
        moe_dp=1,
        tp=ranks,
    )
    same = [point for point in found if point.dp == question["dp"]]
    if not same:
        raise CannotAnswer("does not list this plan")
    return "yes" if same[0].fits else "no"


PEERS: dict[str, Callable[[Question], float | str]] = {
    "vllm-wizard": ask_vllm_wizard,
    "llm-d-planner": ask_llm_d_planner,
    "vramscout": ask_vramscout,
    "llm-mem-planner": ask_llm_mem_planner,
}

if __name__ == "__main__":
    main()
