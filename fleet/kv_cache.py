"""What a model keeps per token and per sequence: keys and values, latents, states."""

from collections.abc import Iterable
from dataclasses import dataclass

from fleet.model import (
    Attention,
    ChunkedAttention,
    CrossAttention,
    FullAttention,
    LatentAttention,
    LinearState,
    Missing,
    Model,
    SlidingAttention,
)
from fleet.parallel_plan import ParallelPlan
from fleet.weights import stages_of

PLAIN_BYTES = 2
DTYPE_BYTES = {
    **dict.fromkeys(("bf16", "bfloat16", "fp16", "float16"), PLAIN_BYTES),
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2"), 1),
}
"""By the names that engines take."""


@dataclass(frozen=True, slots=True)
class SlidingCache:
    """Layers that keep the last tokens only."""

    bytes_per_token: int
    """Of all sliding layers together."""
    window_tokens: int
    """The largest window."""


def element_bytes(model: Model, dtype: str = "auto") -> int:
    """Bytes of one element of the KV cache; ``auto`` is what the checkpoint brings scales for, else bf16."""
    if dtype == "auto":
        dtype = (model.stored.kv_cache_dtype if model.stored else None) or "bf16"
    return DTYPE_BYTES[dtype]


def kv_bytes_per_token(model: Model, dtype: str = "auto") -> int | Missing:
    """Bytes that one more token takes in all layers that keep every token.

    Chunked layers count as full ones (engines keep every token), a latent counts once per layer; sliding windows,
    states, keys and values of an encoder, and the indexer of sparse attention stand apart.
    """
    return model.lacks("kv") or _growing(model.attentions, element_bytes(model, dtype), 1)


def kv_sliding(model: Model, dtype: str = "auto") -> SlidingCache | None:
    """The sliding layers, or ``None`` where there are none."""
    sliding = [attention for attention in model.attentions if isinstance(attention, SlidingAttention)]
    if not sliding:
        return None
    per_token = sum(_kept(one, 1) for one in sliding) * element_bytes(model, dtype)
    return SlidingCache(per_token, max(one.window_tokens for one in sliding))


def state_bytes_per_sequence(model: Model) -> int | None:
    """Bytes of the states of one sequence, whatever its length; ``None`` where no layer keeps one."""
    states = [attention for attention in model.attentions if isinstance(attention, LinearState)]
    return sum(_state(state, 1) for state in states) if states else None


def cross_bytes_per_sequence(model: Model, dtype: str = "auto") -> int | None:
    """Bytes of the encoder's keys and values of one sequence; ``None`` without cross-attention."""
    crossing = [attention for attention in model.attentions if isinstance(attention, CrossAttention)]
    if not crossing:
        return None
    return sum(_kept(one, 1) * one.source_tokens for one in crossing) * element_bytes(model, dtype)


def kv_bytes_per_token_of_rank(model: Model, plan: ParallelPlan, dtype: str = "auto") -> int | Missing:
    """`kv_bytes_per_token` on the GPU that keeps most.

    Tensor parallelism divides KV heads, each rank keeping at least one; a latent stands whole on every rank; a
    pipeline stage keeps its own layers; context parallelism divides the tokens.
    """
    lacking = model.lacks("kv")
    if lacking:
        return lacking
    width = element_bytes(model, dtype)
    stages = (_growing(attentions, width, plan.tensor) for attentions in _stages(model, plan))
    return -(-max(stages) // plan.context)


def sequence_bytes_of_rank(
    model: Model, plan: ParallelPlan, dtype: str = "auto", context_tokens: int = 1
) -> int | Missing:
    """Bytes that one sequence of ``context_tokens`` takes on the GPU that keeps most, everything included."""
    lacking = model.lacks("kv")
    if lacking:
        return lacking
    width = element_bytes(model, dtype)
    return max(
        sum(_of_sequence(attention, width, plan, context_tokens) for attention in attentions)
        for attentions in _stages(model, plan)
    )


def indexer_bytes_per_token(model: Model) -> int | None:
    """Bytes that a sparse-attention indexer keeps per token: keys of one byte and a scale of four per layer."""
    dims = [one.indexer_dim for one in model.attentions if isinstance(one, LatentAttention) and one.indexer_dim]
    return sum(dim + 4 for dim in dims) if dims else None


def _stages(model: Model, plan: ParallelPlan) -> Iterable[tuple[Attention, ...]]:
    start = 0
    for count in stages_of(len(model.layers), plan):
        yield tuple(attention for layer in model.layers[start : start + count] for attention in layer.attention)
        start += count


def _growing(attentions: Iterable[Attention], width: int, tensor: int) -> int:
    total = 0
    for attention in attentions:
        if isinstance(attention, FullAttention | ChunkedAttention):
            total += _kept(attention, tensor)
        elif isinstance(attention, LatentAttention):
            total += attention.latent_dim + attention.rope_dim
    return total * width


def _kept(attention: FullAttention | ChunkedAttention | SlidingAttention | CrossAttention, tensor: int) -> int:
    """Elements per token on one rank."""
    return -(-attention.kv_heads // tensor) * (attention.key_dim + attention.value_dim)


def _state(state: LinearState, tensor: int) -> int:
    size = state.state_elements * state.state_bytes_per_element + state.conv_elements * PLAIN_BYTES
    ranks = min(tensor, state.heads)
    return -(-size // ranks)


def _of_sequence(attention: Attention, width: int, plan: ParallelPlan, tokens: int) -> int:
    share = -(-tokens // plan.context)
    if isinstance(attention, SlidingAttention):
        return _kept(attention, plan.tensor) * width * min(tokens, attention.window_tokens)
    if isinstance(attention, LinearState):
        return _state(attention, plan.tensor)
    if isinstance(attention, CrossAttention):
        return _kept(attention, plan.tensor) * width * attention.source_tokens
    if isinstance(attention, LatentAttention) and attention.indexer_dim:
        return share * (_growing((attention,), width, plan.tensor) + attention.indexer_dim + 4)
    return share * _growing((attention,), width, plan.tensor)
