"""Attention over compressed blocks of tokens (DeepSeek V4): the weights; its cache has no figure per token."""

from collections.abc import Iterator

from fleet.model import UnknownAttention
from fleet.model_reading.blocks import linear, vector
from fleet.model_reading.text import Piece, Text
from fleet.tensors import Part, Split, Tensor

REASON = "layers keep compressed blocks of tokens and a window (compress_ratios): no simple figure per token"
INDEXED_RATIO = 4
"""Layers that compress this little choose among the blocks with an indexer."""
LAYER_TYPES = {"compressed_sparse_attention": INDEXED_RATIO, "heavily_compressed_attention": 128}


def compressed(text: Text, layer: int) -> Piece:
    """One layer."""
    keys = text.keys
    unknown = UnknownAttention(
        REASON, keys.need("num_attention_heads"), keys.size("num_key_value_heads") or 1, "compress_ratios"
    )
    return Piece(unknown, tuple(_weights(text, layer, _ratio(text, layer))))


def _ratio(text: Text, layer: int) -> int:
    ratios = text.keys.counts("compress_ratios")
    if ratios is not None:
        return ratios[layer] if layer < len(ratios) else 0
    types = text.keys.list("layer_types")
    if types is None:
        text.keys.demand("listed_layers")
        return 0
    return LAYER_TYPES.get(str(types[layer]), 0) if layer < len(types) else 0


def _weights(text: Text, layer: int, ratio: int) -> Iterator[Tensor]:
    keys, hidden = text.keys, text.hidden
    heads, dim, rank = keys.need("num_attention_heads"), keys.need("head_dim"), keys.need("q_lora_rank")
    groups, out_rank = keys.need("o_groups"), keys.need("o_lora_rank")
    at = text.module(layer, "self_attn")
    yield from linear(f"{at}.q_a_proj", rank, hidden, Part.ATTENTION, Split.NONE)
    yield from linear(f"{at}.q_b_proj", heads * dim, rank, Part.ATTENTION, Split.OUTPUT)
    yield from linear(f"{at}.kv_proj", dim, hidden, Part.ATTENTION, Split.NONE)
    yield from linear(f"{at}.o_a_proj", groups * out_rank, heads * dim // groups, Part.ATTENTION, Split.OUTPUT)
    yield from linear(f"{at}.o_b_proj", hidden, groups * out_rank, Part.ATTENTION, Split.INPUT)
    yield vector(f"{at}.norms", rank + dim + heads, Part.NORM)
    if ratio:
        wide = dim * (2 if ratio == INDEXED_RATIO else 1)
        yield from _compressor(f"{at}.compressor", hidden, wide, ratio)
    if ratio == INDEXED_RATIO:
        yield from _indexer(text, f"{at}.indexer", rank)


def _compressor(at: str, hidden: int, wide: int, ratio: int) -> Iterator[Tensor]:
    for name in ("wkv", "wgate"):
        yield Tensor(f"{at}.{name}", wide, hidden, Part.ATTENTION, Split.NONE, is_linear=False)
    yield vector(f"{at}.ape", ratio * wide, Part.ATTENTION)


def _indexer(text: Text, at: str, rank: int) -> Iterator[Tensor]:
    heads, dim = text.keys.need("index_n_heads"), text.keys.need("index_head_dim")
    yield from _compressor(f"{at}.compressor", text.hidden, 2 * dim, INDEXED_RATIO)
    yield from linear(f"{at}.wq_b", heads * dim, rank, Part.ATTENTION, Split.NONE)
    yield Tensor(f"{at}.weights_proj", heads, text.hidden, Part.ATTENTION, Split.NONE, is_linear=False)
