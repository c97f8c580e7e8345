"""The language model inside a configuration: its keys, its architecture's traits, and the sizes all parts need."""

from dataclasses import dataclass

from fleet.model import Attention
from fleet.model_reading.families import Family
from fleet.model_reading.keys import Keys
from fleet.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Text:
    """What every part of the reading is given."""

    keys: Keys
    family: Family
    root: str
    """The path of the language model in the checkpoint."""
    hidden: int
    layers: int
    source_tokens: int | None = None
    """Positions that cross-attention looks at: an encoder's, or those of all image tiles."""

    def module(self, layer: int, name: str) -> str:
        """The path of a module of a layer."""
        return f"{self.root}.layers.{layer}.{name}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A layer's mixer as it was read: what it keeps per token, and its weights."""

    attention: Attention
    tensors: tuple[Tensor, ...]
