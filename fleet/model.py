"""What a model is made of: layers with their kind of attention, weight tensors, experts, and what is not known.

The values are read from a Hugging Face ``config.json`` (`fleet.model_reading`); nothing here knows a model by name.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

from fleet.quantization import StoredFormat
from fleet.tensors import Tensor


@dataclass(frozen=True, slots=True)
class FullAttention:
    """Keys and values of every token are kept (MHA, GQA, MQA)."""

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int


@dataclass(frozen=True, slots=True)
class SlidingAttention:
    """Keys and values of the last ``window_tokens`` tokens are kept."""

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    window_tokens: int


@dataclass(frozen=True, slots=True)
class ChunkedAttention:
    """Attention inside chunks; engines keep the keys and values of every token all the same."""

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    chunk_tokens: int


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """MLA: one latent vector and one rotary key per token, whatever the number of heads."""

    heads: int
    latent_dim: int
    rope_dim: int
    indexer_dim: int | None = None
    """Elements per token of a sparse-attention indexer's own cache."""


@dataclass(frozen=True, slots=True)
class CrossAttention:
    """Decoder self-attention plus keys and values of an encoder's ``source_tokens`` positions, per sequence."""

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    source_tokens: int


@dataclass(frozen=True, slots=True)
class LinearState:
    """Linear attention, Mamba, SSM: a state of fixed size per sequence."""

    heads: int
    """Heads (or groups) that tensor parallelism divides."""
    state_elements: int
    """Recurrent state per sequence."""
    state_bytes_per_element: int
    conv_elements: int
    """Convolution state per sequence, in the model's dtype."""


@dataclass(frozen=True, slots=True)
class UncachedAttention:
    """Attention without a cache of its own: it reads another layer's, or sees the whole input at once (encoders)."""

    heads: int
    kv_heads: int


@dataclass(frozen=True, slots=True)
class UnknownAttention:
    """A layer that can't be read: which key is missing, or why there is no simple figure."""

    reason: str
    heads: int = 0
    """0 = not known either."""
    kv_heads: int = 0
    key: str = "layer_types"
    """That would say it."""


Attention = (
    FullAttention
    | SlidingAttention
    | ChunkedAttention
    | LatentAttention
    | CrossAttention
    | LinearState
    | UncachedAttention
    | UnknownAttention
)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; ``attention`` is ``None`` in layers that have none (NAS models, FFN-only layers)."""

    attention: tuple[Attention, ...]
    """Usually one; a hybrid layer may have attention and a state beside it."""
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Experts:
    """The mixture of experts."""

    count: int
    active: int
    """Routed experts per token."""
    intermediate_size: int
    layers: int
    """Layers that have them."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A figure that is not known: the key that would say it."""

    figure: str
    """``weights``, ``kv``, ``stored`` (the checkpoint's own quantisation), ``tower`` (left out of the weights)."""
    key: str
    message: str


@dataclass(frozen=True)
class Model:
    """A model as its configuration describes it."""

    id: str
    architecture: str
    hidden_size: int
    vocabulary: int
    max_context_tokens: int | None
    layers: tuple[Layer, ...]
    tensors: tuple[Tensor, ...]
    """Those outside the layers: embeddings, head, towers, MTP layers."""
    experts: Experts | None = None
    stored: StoredFormat | None = None
    """The checkpoint's own quantisation; ``None`` = plain bf16 or fp16."""
    modalities: frozenset[str] = frozenset({"text"})
    is_generic: bool = False
    """The architecture is not known by name: the generic transformer reading was used."""
    is_generative: bool = True
    """False for embedding and rerank models: no token is generated, so little KV cache is held."""
    missing: tuple[Missing, ...] = ()

    @cached_property
    def all_tensors(self) -> tuple[Tensor, ...]:
        """Every tensor of the checkpoint."""
        return (*self.tensors, *(tensor for layer in self.layers for tensor in layer.tensors))

    @cached_property
    def attentions(self) -> tuple[Attention, ...]:
        """The attention of every layer that has one."""
        return tuple(attention for layer in self.layers for attention in layer.attention)

    @cached_property
    def has_state(self) -> bool:
        """Whether a layer keeps a state of fixed size (a hybrid or a state-space model)."""
        return any(isinstance(attention, LinearState) for attention in self.attentions)

    @cached_property
    def has_latent_attention(self) -> bool:
        """Whether a layer has MLA."""
        return any(isinstance(attention, LatentAttention) for attention in self.attentions)

    @cached_property
    def remembered(self) -> dict[Hashable, object]:
        """What was computed from this model once and is asked for ten thousand times (sizes per quantisation)."""
        return {}

    def lacks(self, figure: str) -> Missing | None:
        """Why a figure is not known, or ``None`` when it is."""
        return next((item for item in self.missing if item.figure == figure), None)
