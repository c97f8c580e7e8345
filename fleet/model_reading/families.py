"""What an architecture fixes that its configurations do not state."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Windows(StrEnum):
    """Which layers slide where a configuration gives a window but no list of layers."""

    ALL = "all"
    EVEN = "even"
    """Layers 0, 2, 4 ... slide."""
    PATTERN = "pattern"
    """All but every n-th (`sliding_window_pattern`)."""
    OPT_IN = "opt-in"
    """Only with ``use_sliding_window``, from ``max_window_layers`` on."""
    NEVER = "never"
    """The window is not used by this architecture."""


class QkNorm(StrEnum):
    """Norms of queries and keys."""

    NONE = "none"
    HEAD = "head"
    """One of a head's size for all heads."""
    FULL = "full"
    """One over all heads together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The traits of one architecture; the defaults are those of a Llama."""

    tied: bool = False
    """Whether input embedding and head share one matrix when ``tie_word_embeddings`` is absent."""
    gated: bool = True
    """Two first matrices in an FFN instead of one."""
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norms: int = 2
    """Per layer, of the hidden size; final norm apart."""
    norm_bias: bool = False
    qk_norm: QkNorm = QkNorm.NONE
    windows: Windows = Windows.ALL
    window_pattern: int = 0
    head_dim: int | None = None
    output_gate: bool = False
    """Queries come with a gate of their size (``q_proj`` is twice as wide)."""
    attention_gate: bool = False
    """A matrix of its own gates the attention's output."""
    chunk_pattern: int = 0
    """Every n-th layer sees everything, the others a chunk."""
    positions: int | None = None
    """Learned position embeddings: their number beyond ``max_position_embeddings``; ``None`` = rotary or none."""
    expert_size_is_ffn: bool = True
    """Experts have ``intermediate_size`` when no size of their own is stated."""
    shared_experts: int = 0
    """Shared experts of the routed ones' size that no key states."""
    shared_gate: bool = False
    """A gate of one row on the shared expert."""
    expert_bias: bool = False
    linear_kind: str = "gdn"
    """What ``linear_attention`` means: gdn, kda, lightning."""
    mamba_kind: str = "mamba2"
    mtp: str = "deepseek"
    """How the layers for multi-token prediction are stored: deepseek, qwen, none."""
    mtp_layers: int = 0
    """How many there are when no key states it."""
    mtp_vocabulary: bool = False
    """Whether each of them brings a copy of embedding and head."""
    has_ffn: bool = True
    dense_beside_experts: bool = False
    """Sparse layers have a dense FFN as well."""
    is_parallel_hybrid: bool = False
    """Every layer has attention and a state side by side."""
    is_encoder: bool = False
    """Sees the whole input at once, keeps no cache."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Values of keys that published configurations leave out."""
