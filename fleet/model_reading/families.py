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

    tied: bool | None = False
    """Whether input embedding and head share one matrix when ``tie_word_embeddings`` is absent; ``None`` = not
    known."""
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
    experts_take_ffn_size: bool = True
    """Experts have ``intermediate_size`` when no size of their own is stated."""
    dense_key: str = ""
    """The key of the dense FFN's width where it is not ``intermediate_size``."""
    ffn_is_four_times: bool = False
    """The FFN is four times as wide as the model where its width is not stated."""
    ffn_is_halved: bool = False
    """Each of both first matrices has half the stated width."""
    ffn_is_adjusted: bool = False
    """The stated width is cut to two thirds and rounded up (``block_auto_adjust_ff_dim``)."""
    vision_experts: bool = False
    """Experts for images stand beside those for text, their sizes second in the lists."""
    nested: tuple[str, ...] = ()
    """Sections whose keys count as the model's own."""
    extra_embeddings: int = 0
    """Rows of the input embedding beyond the vocabulary."""
    token_types: bool = False
    """Embeddings of two token types and a pooler (BERT)."""
    shared_experts: int = 0
    """Shared experts of the routed ones' size that no key states."""
    shared_gate: bool = False
    """A gate of one row on the shared expert."""
    expert_bias: bool = False
    state: str = ""
    """What ``linear_attention`` and ``mamba`` layers are: gdn, kda, lightning, mamba1, mamba2 or conv."""
    state_gates_are_whole: bool = False
    """Kimi delta attention whose gates are full matrices instead of low-rank ones."""
    doubled: bool = False
    """Every layer has two attentions and two dense FFNs (LongCat)."""
    is_compressed: bool = False
    """Attention over compressed blocks of tokens (DeepSeek V4): no simple figure per token."""
    mtp: str = "deepseek"
    """How the layers for multi-token prediction are stored: deepseek, qwen, none."""
    mtp_layers: int = 0
    """How many there are when no key states it."""
    mtp_vocabulary: tuple[str, ...] = ()
    """Copies of embedding and head that each of them brings."""
    mtp_is_dense: bool = False
    """Their FFN is dense where the model's is a mixture."""
    has_ffn: bool = True
    dense_beside_experts: bool = False
    """Sparse layers have a dense FFN as well."""
    is_parallel_hybrid: bool = False
    """Every layer has attention and a state side by side."""
    is_state_only: bool = False
    """No layer has attention (Mamba)."""
    is_encoder: bool = False
    """Sees the whole input at once, keeps no cache."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Values of keys that published configurations leave out."""
