"""Proposes batch settings with reasons, and how to serve a mixture of experts."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from fleet.hardware import GpuModel
from fleet.memory import Memory
from fleet.model import Experts, Missing
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import ModelFigures
from fleet.plan_wish import PlanWish

BLOCK_TOKENS = {"vllm": 16, "sglang": 1, "tensorrt-llm": 32}
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
EFFICIENCY = 0.8
"""Of the peak memory bandwidth (facts of the latency roofline)."""
BF16_BYTES = 2
LONG_PROMPT_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Setting:
    """One proposed setting."""

    name: str
    value: int | str | bool | list[int]
    reason: str


def batch_settings(figures: ModelFigures, wish: PlanWish, gpu: GpuModel, memory: Memory) -> tuple[Setting, ...]:
    """Batch settings for the engine, each with its reason."""
    context = memory.context_tokens
    held = max(1, int((memory.sequences or 0) / memory.data_ranks))
    wanted = max(1, memory.sequences_wanted)
    sequences = wish.max_num_seqs or min(memory.settings.max_num_seqs, max(wanted, min(held, 4 * wanted)))
    return (
        Setting("max_model_len", context, "the wished context: a longer one takes cache that nobody uses"),
        Setting("max_num_seqs", sequences, f"the cache holds {held} x {context} tokens per rank; {wanted} wished"),
        _batched_tokens(wish, memory),
        Setting(
            "block_size", BLOCK_TOKENS.get(wish.engine, 16), "the engine's default: whole blocks are shared and evicted"
        ),
        _kv_dtype(figures, wish, gpu, memory),
        _graph_sizes(wish, sequences),
        _chunked_prefill(wish),
        _speculation(figures, wish),
    )


def moe_advice(
    figures: ModelFigures, plan: ParallelPlan, wish: PlanWish, gpu: GpuModel, memory: Memory | None
) -> dict[str, Any] | None:
    """How a mixture of experts is split and batched; ``None`` for a dense model."""
    experts = figures.model.experts
    if experts is None:
        return None
    sent = all_to_all_bytes(figures.model.hidden_size, experts, plan)
    return {
        "experts": experts.count,
        "active": experts.active,
        "split": "expert-parallel" if plan.expert > 1 else "tensor-parallel",
        "split_reason": _split_reason(experts, plan, wish),
        "data_parallel_attention": plan.data > 1,
        "attention_reason": _attention_reason(figures, plan, wish),
        **_residency(figures, plan, wish, gpu, memory),
        "all_to_all_bytes_per_token": sent,
        "batches": batch_curve(figures, plan, gpu, wish.context_of(figures.model)),
    }


def active_share(experts: Experts, batch: int) -> float:
    """Share of the experts that a batch of tokens wakes: 1 - (1 - k/E)^B."""
    if experts.count <= 0:
        return 0.0
    return 1.0 - (1.0 - min(1.0, experts.active / experts.count)) ** batch


def batch_curve(
    figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, context_tokens: int
) -> list[dict[str, float | int | None]]:
    """Decode at several batch sizes, bounded by memory traffic: what doubling the batch gains is not monotonic.

    From batch 1 up each further token wakes experts of its own, so doubling gains little; once all experts are awake
    it gains nearly double; at last each sequence's own cache is what is read, and doubling gains nothing again.
    """
    rates = [(batch, _tokens_per_second(figures, plan, gpu, batch, context_tokens)) for batch in BATCHES]
    experts, curve = figures.model.experts, []
    for (batch, rate), (_, doubled) in pairwise(rates):
        row: dict[str, float | int | None] = {"batch": batch}
        row["active_expert_share"] = round(active_share(experts, batch), 4) if experts else None
        row["tokens_per_second_bound"] = None if rate is None else round(rate, 1)
        row["gain_of_doubling"] = None if rate is None or doubled is None else round(doubled / rate, 3)
        curve.append(row)
    return curve


def _tokens_per_second(
    figures: ModelFigures, plan: ParallelPlan, gpu: GpuModel, batch: int, context_tokens: int
) -> float | None:
    """Batch over the bytes of a step: weights of the awake experts once, each sequence's cache once."""
    experts, weights = figures.model.experts, figures.rank_weights(plan)
    cache, bandwidth = figures.sequence_bytes(plan, context_tokens), gpu.memory_bandwidth_gb_per_second
    if experts is None or isinstance(weights, Missing) or isinstance(cache, Missing) or not bandwidth:
        return None
    share = figures.expert_bytes // max(1, plan.stage_ranks * plan.pipeline)
    awake = max(0, weights - share) + share * active_share(experts, batch)
    per_rank = -(-batch // plan.data)
    return batch / ((awake + per_rank * cache) * plan.pipeline / (EFFICIENCY * bandwidth * 1e9))


def all_to_all_bytes(hidden: int, experts: Experts, plan: ParallelPlan) -> int:
    """Bytes that one token sends and gets over all layers under expert parallelism: bf16, k experts, both ways.

    A copy for an expert on the own rank stays at home: (ranks - 1) / ranks of them travel.
    """
    ranks = plan.expert
    if ranks <= 1:
        return 0
    return 2 * experts.layers * experts.active * hidden * BF16_BYTES * (ranks - 1) // ranks


def _residency(
    figures: ModelFigures, plan: ParallelPlan, wish: PlanWish, gpu: GpuModel, memory: Memory | None
) -> dict[str, str]:
    """All experts on the GPUs; else in host memory, with what fetching the awake ones costs a step."""
    experts, share = figures.model.experts, figures.expert_bytes // max(1, plan.stage_ranks * plan.pipeline)
    if experts is None or memory is None or memory.short <= 0:
        reason = "all experts stay in GPU memory: a full batch wakes nearly every expert in each step"
        return {"residency": "resident", "residency_reason": reason}
    if memory.short > share:
        reason = "the plan does not fit even without experts: keeping them in host memory would not help"
        return {"residency": "none", "residency_reason": reason}
    awake = int(share * active_share(experts, max(1, wish.concurrency // plan.data)))
    rate = gpu.pcie_gb_per_second
    pace = "" if not rate else f", {awake * plan.pipeline / rate / 1e9:.2f} s a step over PCIe"
    reason = f"experts of {memory.short} bytes per GPU would lie in host memory: up to {awake} bytes are fetched{pace}"
    return {"residency": "offload", "residency_reason": reason}


def _split_reason(experts: Experts, plan: ParallelPlan, wish: PlanWish) -> str:
    if plan.expert > 1:
        return (
            f"whole experts on {plan.expert} ranks: no expert is cut; {wish.concurrency} tokens a step spread over them"
        )
    if plan.stage_ranks == 1:
        return "one GPU holds all experts"
    busy = active_share(experts, wish.concurrency)
    return (
        f"each expert is cut over {plan.stage_ranks} ranks: at {wish.concurrency} tokens a step {busy:.0%} of the "
        "experts work, so whole experts per rank would leave ranks waiting; large batches are better with them"
    )


def _attention_reason(figures: ModelFigures, plan: ParallelPlan, wish: PlanWish) -> str:
    if not figures.is_latent:
        return "attention is divided by heads; nothing is copied up to as many ranks as KV heads"
    if plan.data > 1:
        return f"the latent cache is kept once per rank: {plan.data} ranks with their own sequences and no copy"
    if plan.tensor > 1:
        copies = f"tensor parallelism keeps {plan.tensor} copies of the latent cache"
        if figures.has_sparse_attention:
            copies += ", and sparse attention pads the heads of a rank to 64"
        return f"{copies}; data-parallel attention keeps one per sequence"
    return "one GPU: nothing is copied"


def _batched_tokens(wish: PlanWish, memory: Memory) -> Setting:
    tokens = memory.settings.max_num_batched_tokens
    if wish.max_num_batched_tokens is not None:
        return Setting("max_num_batched_tokens", tokens, "as asked")
    return Setting(
        "max_num_batched_tokens",
        tokens,
        "the engine's default on this GPU: the prefill chunk, bounds the inter-token time",
    )


def _kv_dtype(figures: ModelFigures, wish: PlanWish, gpu: GpuModel, memory: Memory) -> Setting:
    native = gpu.compute_capability is not None and gpu.compute_capability >= (8, 9)
    if wish.kv_dtype != "auto":
        return Setting("kv_cache_dtype", wish.kv_dtype, "as asked")
    if native and not memory.holds_wish:
        return Setting(
            "kv_cache_dtype", "fp8", "the cache is too small for the wish in bf16; fp8 halves it, check quality"
        )
    return Setting("kv_cache_dtype", "auto", "the cache is large enough for the wish")


def _graph_sizes(wish: PlanWish, sequences: int) -> Setting:
    if wish.enforce_eager:
        return Setting("graph_sizes", [], "enforce_eager: no graphs")
    sizes = [size for size in (1, 2, 4, *range(8, 257, 8), *range(272, 513, 16)) if size <= sequences]
    return Setting("graph_sizes", sizes, "no batch is larger than max_num_seqs: graphs beyond it only cost memory")


def _chunked_prefill(wish: PlanWish) -> Setting:
    prompt = wish.input_tokens or wish.context_tokens or 0
    if prompt > LONG_PROMPT_TOKENS:
        return Setting(
            "enable_chunked_prefill", True, f"prompts of {prompt} tokens would stop decoding for a whole step"
        )
    return Setting("enable_chunked_prefill", True, "the default: prefill and decode share each step")


def _speculation(figures: ModelFigures, wish: PlanWish) -> Setting:
    has_mtp = any(tensor.part.value == "mtp" for tensor in figures.model.tensors)
    if wish.concurrency > 16:
        return Setting(
            "speculative", "none", f"{wish.concurrency} sequences already fill the step; drafts would cost throughput"
        )
    if wish.draft is not None:
        return Setting("speculative", "draft", "a draft model was given and few sequences are in flight")
    if has_mtp:
        return Setting("speculative", "mtp", "the checkpoint has layers to draft with and few sequences are in flight")
    return Setting("speculative", "ngram", "few sequences in flight; no draft model: prompt look-up costs no memory")
