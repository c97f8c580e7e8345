"""Weight tensors: what they belong to, how tensor parallelism divides them, how many elements they have."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Part(StrEnum):
    """What a weight tensor belongs to."""

    EMBEDDING = "embedding"
    LM_HEAD = "lm-head"
    ATTENTION = "attention"
    STATE = "state"
    """Linear attention and state-space layers."""
    DENSE_FFN = "dense-ffn"
    SHARED_EXPERTS = "shared-experts"
    EXPERTS = "experts"
    ROUTER = "router"
    NORM = "norm"
    ENCODER = "encoder"
    """The vision or audio tower and its projector, or the encoder of an encoder-decoder model."""
    MTP = "mtp"
    """Layers for multi-token prediction: stored with the checkpoint, loaded only when they draft."""


class Split(StrEnum):
    """How tensor parallelism divides a tensor."""

    OUTPUT = "output"
    """Columns over the ranks: query heads, the first matrices of an FFN."""
    INPUT = "input"
    """Rows over the ranks: the output projection, the last matrix of an FFN."""
    KV_HEADS = "kv-heads"
    """Key and value heads over the ranks, one head copied where there are fewer heads than ranks."""
    VOCABULARY = "vocabulary"
    """Rows of the vocabulary, padded."""
    EXPERTS = "experts"
    """Whole experts over the expert-parallel ranks, else each expert over the tensor-parallel ones."""
    NONE = "none"
    """Every rank holds it whole."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One weight matrix (or several alike) of one module."""

    module: str
    """The module's path as checkpoints spell it, for lists of modules that are not quantised; of alike experts
    ``*`` stands for the number."""
    out_features: int
    in_features: int
    """1 for vectors."""
    part: Part
    split: Split
    is_linear: bool = True
    """Whether quantisation may touch it: norms, biases, convolutions and embeddings are never linear."""
    copies: int = 1
    """How many of them there are under this path (experts)."""
    heads: int = 0
    """Of a tensor split by `Split.KV_HEADS`: how many key and value heads its rows hold."""

    @property
    def parameters(self) -> int:
        """Elements of all copies."""
        return self.out_features * self.in_features * self.copies


def parameters(tensors: Iterable[Tensor]) -> int:
    """Elements of all these tensors."""
    return sum(tensor.parameters for tensor in tensors)
