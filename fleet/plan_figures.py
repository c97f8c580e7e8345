"""Figures of one model under one quantisation and KV dtype, worked out once and asked thousands of times."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from fleet.kv_cache import kv_bytes_per_token_of_rank, sequence_bytes_of_rank
from fleet.memory_constants import ModelClass, memory_file
from fleet.model import LatentAttention, LinearState, Missing, Model, UnknownAttention
from fleet.parallel_plan import ParallelPlan
from fleet.quantization import Encoding
from fleet.tensors import Part, Split, Tensor
from fleet.weights import bytes_by_part, encoding_of, weights_bytes_of_rank

Figure = TypeVar("Figure")


@dataclass(frozen=True, slots=True, order=True)
class Heads:
    """One kind of attention of the model, as far as parallelism sees it."""

    heads: int
    kv_heads: int | None
    """``None`` = a latent cache: nothing to divide."""


@dataclass(frozen=True, slots=True, order=True)
class DividedMatrix:
    """The second matrix of an FFN or the output projection: its rows are divided by tensor parallelism."""

    part: Part
    rows: int
    encoding: str


@dataclass(frozen=True)
class ModelFigures:
    """A model with what was already worked out about it."""

    model: Model
    quantization: str | None
    kv_dtype: str
    _rank_weights: dict[tuple[int, ...], int | Missing] = field(default_factory=dict)
    _sequences: dict[tuple[int, ...], int | Missing] = field(default_factory=dict)
    _tokens: dict[tuple[int, ...], int | Missing] = field(default_factory=dict)

    @cached_property
    def model_class(self) -> ModelClass:
        """Dense, mixture of experts, multimodal."""
        return ModelClass.of(self.model)

    @cached_property
    def heads(self) -> tuple[Heads, ...]:
        """The distinct kinds of attention."""
        found: set[Heads] = set()
        for attention in self.model.attentions:
            if isinstance(attention, LatentAttention):
                found.add(Heads(attention.heads, None))
            elif isinstance(attention, UnknownAttention):
                if attention.heads:
                    found.add(Heads(attention.heads, attention.kv_heads or None))
            elif not isinstance(attention, LinearState):
                found.add(Heads(attention.heads, attention.kv_heads))
        return tuple(sorted(found, key=lambda item: (item.heads, item.kv_heads or 0)))

    @cached_property
    def is_latent(self) -> bool:
        """Whether its cache is a latent one, which tensor parallelism copies."""
        return any(isinstance(item, LatentAttention) for item in self.model.attentions)

    @cached_property
    def has_sparse_attention(self) -> bool:
        """Whether an indexer chooses the tokens that are attended to (DSA)."""
        return any(isinstance(item, LatentAttention) and item.indexer_dim is not None for item in self.model.attentions)

    @cached_property
    def _encoded(self) -> tuple[tuple[Tensor, Encoding], ...]:
        """Linear tensors that are loaded in any case, with their encodings; alike ones of other layers once."""
        known: dict[tuple[object, ...], tuple[Tensor, Encoding]] = {}
        for tensor in self.model.all_tensors:
            if tensor.is_linear and tensor.part is not Part.MTP:
                encoding = encoding_of(tensor, self.model, self.quantization)
                shape = (tensor.part, tensor.split, tensor.out_features, tensor.in_features, encoding.name)
                known.setdefault(shape, (tensor, encoding))
        return tuple(known.values())

    @cached_property
    def encodings(self) -> dict[str, Encoding]:
        """The encodings of its linear layers, by name."""
        return {encoding.name: encoding for _, encoding in self._encoded}

    @cached_property
    def divided(self) -> tuple[DividedMatrix, ...]:
        """The distinct matrices whose rows tensor parallelism divides, experts apart."""
        found = {
            DividedMatrix(tensor.part, tensor.in_features, encoding.name)
            for tensor, encoding in self._encoded
            if tensor.split is Split.INPUT
        }
        return tuple(sorted(found))

    @cached_property
    def expert_encoding(self) -> Encoding | None:
        """How the routed experts are stored, or ``None`` without experts."""
        return next((encoding for tensor, encoding in self._encoded if tensor.part is Part.EXPERTS), None)

    @cached_property
    def expert_bytes(self) -> int:
        """Bytes of all routed experts."""
        return bytes_by_part(self.model, self.quantization).get(Part.EXPERTS, 0)

    @cached_property
    def dense_width(self) -> int:
        """The widest row-divided matrix of an FFN that every token passes."""
        parts = (Part.DENSE_FFN, Part.SHARED_EXPERTS)
        return max((item.rows for item in self.divided if item.part in parts), default=0)

    def rank_weights(self, plan: ParallelPlan, *, with_mtp: bool = False) -> int | Missing:
        """Weights of the fullest GPU in bytes, experts padded as the engine loads them."""
        key = (plan.tensor, plan.pipeline, plan.data, plan.expert, plan.context, int(with_mtp))
        return _remembered(self._rank_weights, key, lambda: self._weights(plan, with_mtp))

    def sequence_bytes(self, plan: ParallelPlan, context_tokens: int) -> int | Missing:
        """KV cache and state of one sequence on the fullest GPU in bytes."""
        key = (plan.tensor, plan.pipeline, plan.context, context_tokens)
        return _remembered(
            self._sequences,
            key,
            lambda: sequence_bytes_of_rank(self.model, plan, self.kv_dtype, context_tokens),
        )

    def token_bytes(self, plan: ParallelPlan) -> int | Missing:
        """KV cache of one token in the layers that keep every token, on the fullest GPU in bytes."""
        key = (plan.tensor, plan.pipeline, plan.context)
        return _remembered(self._tokens, key, lambda: kv_bytes_per_token_of_rank(self.model, plan, self.kv_dtype))

    def _weights(self, plan: ParallelPlan, with_mtp: bool) -> int | Missing:
        stored = weights_bytes_of_rank(self.model, plan, self.quantization, with_mtp=with_mtp)
        return stored if isinstance(stored, Missing) else stored + self._padding(plan)

    def _padding(self, plan: ParallelPlan) -> int:
        rule, experts, encoding = memory_file().expert_padding, self.model.experts, self.expert_encoding
        if experts is None or encoding is None or encoding.name not in rule.encodings:
            return 0
        spread = plan.expert or 1
        width = -(-experts.intermediate_size * spread // plan.stage_ranks)
        share = self.expert_bytes // (plan.stage_ranks * plan.pipeline)
        padded = -(-width // rule.multiple) * rule.multiple
        return share * (padded - width) // width if width else 0


def figures_of(model: Model, quantization: str | None, kv_dtype: str) -> ModelFigures:
    """The figures of a model, remembered with it."""
    key = ("plan figures", quantization, kv_dtype)
    known = model.remembered.get(key)
    if not isinstance(known, ModelFigures):
        known = model.remembered[key] = ModelFigures(model, quantization, kv_dtype)
    return known


def _remembered(memory: dict[tuple[int, ...], Figure], key: tuple[int, ...], work: Callable[[], Figure]) -> Figure:
    if key not in memory:
        memory[key] = work()
    return memory[key]
