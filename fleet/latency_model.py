"""What one step of a model has to do: bytes to read, operations, kernels; independent of hardware and plan."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from fleet.kv_cache import sequence_bytes_of_rank
from fleet.model import (
    Attention,
    ChunkedAttention,
    CrossAttention,
    FullAttention,
    LatentAttention,
    Layer,
    LinearState,
    Missing,
    Model,
    SlidingAttention,
)
from fleet.parallel_plan import ParallelPlan
from fleet.quantization import Encoding
from fleet.tensors import Part, Split, Tensor
from fleet.weights import encoding_of

KERNELS_OF_ATTENTION = 8
"""Norm, query-key-value, rotation, cache write, attention, its reduction, output, residual: counted by structure, the
time of one is fitted. Fused or split kernels of an engine end up in that time."""
KERNELS_OF_LATENT_ATTENTION = 12
KERNELS_OF_INDEXER = 12
KERNELS_OF_STATE = 12
KERNELS_OF_DENSE_FFN = 4
KERNELS_OF_EXPERTS = 6


class Operations(StrEnum):
    """Which units of the GPU do the matrix products."""

    BF16 = "bf16"
    FP8 = "fp8"
    FP4 = "fp4"


@dataclass(frozen=True)
class ModelWork:
    """Sizes of one model under one quantisation and KV dtype, added up once."""

    model: Model
    kv_dtype: str
    divided_bytes: int
    """Read in each step and divided by tensor parallelism."""
    whole_bytes: int
    """Read in each step by every rank."""
    expert_bytes: int
    """Of all routed experts; a step reads those that its tokens choose."""
    embedding_bytes: int
    """Held, but only looked up."""
    operations_per_token: float
    """Multiplications and additions: two per active parameter, embedding and head apart."""
    attention_operations: float
    """Per pair of tokens and causal half: heads x (key + value dim), over all layers without a window."""
    decode_attention_operations: float
    """Of one new token per token before it, over all layers without a window; a latent is attended to as it lies."""
    windowed_operations: tuple[tuple[int, float], ...]
    """(window, the same) of sliding layers."""
    kernels: int
    """Launched in a step."""
    reductions: int
    """Places where the ranks of a plan wait for each other: after attention, after the FFN."""
    encoding: Encoding
    """Of most of the weights."""
    _sequences: dict[tuple[int, int, int], int | Missing] = field(default_factory=dict, repr=False, compare=False)

    def sequence_bytes(self, plan: ParallelPlan, context_tokens: int) -> int | Missing:
        """KV cache and state of one sequence that one rank reads in a step, over all pipeline stages."""
        key = (plan.tensor, plan.context, context_tokens)
        if key not in self._sequences:
            one_stage = ParallelPlan(tensor=plan.tensor, context=plan.context)
            self._sequences[key] = sequence_bytes_of_rank(self.model, one_stage, self.kv_dtype, context_tokens)
        return self._sequences[key]

    def chosen_part(self, tokens: float) -> float:
        """Part of the experts that some tokens touch: 1 - (1 - k/E)^tokens, as if each chose at random."""
        experts = self.model.experts
        if experts is None or not experts.count:
            return 0.0
        return 1.0 - math.pow(1.0 - min(1.0, experts.active / experts.count), tokens)

    def attention_operations_of_prompt(self, tokens: int) -> float:
        """Of one prompt: every token with those before it, or with those in its window."""
        windows = sum(tokens * min(tokens, 2 * window) * each for window, each in self.windowed_operations)
        return self.attention_operations * tokens * tokens + windows

    def operations_on(self, compute_capability: tuple[int, int] | None) -> Operations:
        """The units that take the encoding as it is; below its native capability weights are unpacked to bf16."""
        major, minor = compute_capability or (0, 0)
        native = self.encoding.min_native_capability
        if native is None or major + minor / 10 < native or self.encoding.bits not in (4, 8):
            return Operations.BF16
        return Operations.FP8 if self.encoding.bits == 8 else Operations.FP4


def work_of(model: Model, quantization: str | None = None, kv_dtype: str = "auto") -> ModelWork:
    """The sizes of a model, remembered with it."""
    key = ("latency work", quantization, kv_dtype)
    known = model.remembered.get(key)
    if not isinstance(known, ModelWork):
        known = model.remembered[key] = _added_up(model, quantization, kv_dtype)
    return known


def _added_up(model: Model, quantization: str | None, kv_dtype: str) -> ModelWork:
    stored = [(tensor, encoding_of(tensor, model, quantization)) for tensor in model.all_tensors if _runs(tensor)]
    read = [item for item in stored if item[0].part is not Part.EMBEDDING or _is_tied(model)]
    experts = [item for item in read if item[0].part is Part.EXPERTS]
    whole = [item for item in read if item[0].split is Split.NONE]
    pairs = [_pair_operations(attention, layer) for layer in model.layers for attention in layer.attention]
    return ModelWork(
        model=model,
        kv_dtype=kv_dtype,
        divided_bytes=_bytes(read) - _bytes(experts) - _bytes(whole),
        whole_bytes=_bytes(whole),
        expert_bytes=_bytes(experts),
        embedding_bytes=_bytes(item for item in stored if item[0].part is Part.EMBEDDING),
        operations_per_token=2.0 * sum(_active_parameters(tensor, model) for tensor, _ in stored),
        attention_operations=sum(each for window, each in pairs if window is None),
        decode_attention_operations=2.0 * sum(_decode_operations(attention) for attention in model.attentions),
        windowed_operations=_by_window(pairs),
        kernels=sum(_kernels(layer) for layer in model.layers),
        reductions=sum(bool(layer.attention) + _has_ffn(layer) for layer in model.layers),
        encoding=_usual_encoding(stored),
    )


def _bytes(items: Iterable[tuple[Tensor, Encoding]]) -> int:
    return sum(encoding.bytes_of(tensor) for tensor, encoding in items)


def _usual_encoding(items: Iterable[tuple[Tensor, Encoding]]) -> Encoding:
    """That of most parameters which are multiplied."""
    sizes: dict[Encoding, int] = {}
    for tensor, encoding in items:
        if tensor.part not in (Part.EMBEDDING, Part.LM_HEAD):
            sizes[encoding] = sizes.get(encoding, 0) + tensor.parameters
    return max(sizes, key=lambda encoding: sizes[encoding])


def _runs(tensor: Tensor) -> bool:
    """Towers see a prompt once; MTP layers run only when they draft."""
    return tensor.part not in (Part.ENCODER, Part.MTP)


def _is_tied(model: Model) -> bool:
    return not any(tensor.part is Part.LM_HEAD for tensor in model.tensors)


def _active_parameters(tensor: Tensor, model: Model) -> float:
    if tensor.part in (Part.EMBEDDING, Part.LM_HEAD):
        return 0
    if tensor.part is Part.EXPERTS and model.experts is not None and model.experts.count:
        return tensor.parameters * model.experts.active / model.experts.count
    return tensor.parameters


def _pair_operations(attention: Attention, layer: Layer) -> tuple[int | None, float]:
    """The window, if any, and the operations per pair of tokens: heads x (key + value dim)."""
    if isinstance(attention, SlidingAttention):
        return attention.window_tokens, attention.heads * (attention.key_dim + attention.value_dim)
    if isinstance(attention, FullAttention | ChunkedAttention | CrossAttention):
        return None, attention.heads * (attention.key_dim + attention.value_dim)
    if isinstance(attention, LatentAttention):
        return None, 2 * _value_width(layer) + attention.heads * attention.rope_dim
    return None, 0.0


def _decode_operations(attention: Attention) -> float:
    """Heads x (key + value dim); every head of a latent works over the whole latent. An indexer leaves out most tokens,
    how many it keeps the model does not say, so none are counted there."""
    if isinstance(attention, LatentAttention):
        return 0.0 if attention.indexer_dim else attention.heads * (2 * attention.latent_dim + attention.rope_dim)
    if isinstance(attention, FullAttention | ChunkedAttention | CrossAttention):
        return attention.heads * (attention.key_dim + attention.value_dim)
    return 0.0


def _by_window(pairs: Iterable[tuple[int | None, float]]) -> tuple[tuple[int, float], ...]:
    sums: dict[int, float] = {}
    for window, each in pairs:
        if window is not None:
            sums[window] = sums.get(window, 0.0) + each
    return tuple(sums.items())


def _value_width(layer: Layer) -> int:
    """Heads x value dim, as the output projection shows it: prompts are attended to without the latent."""
    widths = (t.in_features for t in layer.tensors if t.part is Part.ATTENTION and t.split is Split.INPUT)
    return max(widths, default=0)


def _kernels(layer: Layer) -> int:
    parts = {tensor.part for tensor in layer.tensors}
    ffn = KERNELS_OF_EXPERTS if Part.EXPERTS in parts else KERNELS_OF_DENSE_FFN if Part.DENSE_FFN in parts else 0
    return ffn + sum(_kernels_of(attention) for attention in layer.attention)


def _kernels_of(attention: Attention) -> int:
    if isinstance(attention, LinearState):
        return KERNELS_OF_STATE
    if isinstance(attention, LatentAttention):
        return KERNELS_OF_LATENT_ATTENTION + (KERNELS_OF_INDEXER if attention.indexer_dim else 0)
    return KERNELS_OF_ATTENTION


def _has_ffn(layer: Layer) -> bool:
    return any(tensor.part in (Part.EXPERTS, Part.DENSE_FFN) for tensor in layer.tensors)
