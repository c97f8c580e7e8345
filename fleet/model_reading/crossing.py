"""Layers that attend to another sequence: to the encoder of a speech model, to image tiles."""

from fleet.model import CrossAttention
from fleet.model_reading.attention import grouped
from fleet.model_reading.heads import heads_of
from fleet.model_reading.keys import Lacking
from fleet.model_reading.text import Piece, Text


def crossing(text: Text, layer: int, source_tokens: int | None) -> Piece:
    """Cross-attention of one layer, with matrices like self-attention's."""
    if not source_tokens:
        raise Lacking("vision_config.image_size", "how many positions the layers look at is not stated")
    piece = grouped(text, layer, "full", 0)
    heads = heads_of(text, layer, "full")
    attention = CrossAttention(heads.queries, heads.keys_values, heads.key_dim, heads.value_dim, source_tokens)
    return Piece(attention, piece.tensors)
