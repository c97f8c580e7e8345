"""Multi-head latent attention (MLA), with the indexer of sparse attention where there is one."""

from collections.abc import Iterator

from fleet.model import Attention, LatentAttention, SlidingAttention
from fleet.model_reading.blocks import linear, vector
from fleet.model_reading.text import Piece, Text
from fleet.tensors import Part, Split, Tensor


def latent(text: Text, layer: int, window: int = 0) -> Piece:
    """MLA of one layer; with a window, the latents of the last tokens are kept."""
    keys = text.keys
    rank, rope = keys.need("kv_lora_rank"), keys.count("qk_rope_head_dim") or 0
    heads = keys.need("num_attention_heads")
    indexer = keys.size("index_head_dim") if keys.has("index_n_heads") and not window else None
    attention: Attention = LatentAttention(heads, rank, rope, indexer)
    if window:
        attention = SlidingAttention(heads, 1, rank, rope, window)
    return Piece(attention, tuple(_weights(text, layer, has_indexer=indexer is not None)))


def _weights(text: Text, layer: int, *, has_indexer: bool) -> Iterator[Tensor]:
    keys, hidden = text.keys, text.hidden
    heads, rank, rope = keys.need("num_attention_heads"), keys.need("kv_lora_rank"), keys.count("qk_rope_head_dim") or 0
    nope, value = keys.need("qk_nope_head_dim"), keys.need("v_head_dim")
    at = text.module(layer, "self_attn")
    queries = heads * (nope + rope)
    rank_of_queries = keys.size("q_lora_rank")
    if rank_of_queries:
        yield from linear(f"{at}.q_a_proj", rank_of_queries, hidden, Part.ATTENTION, Split.NONE)
        yield vector(f"{at}.q_a_layernorm", rank_of_queries, Part.NORM)
        yield from linear(f"{at}.q_b_proj", queries, rank_of_queries, Part.ATTENTION, Split.OUTPUT)
    else:
        yield from linear(f"{at}.q_proj", queries, hidden, Part.ATTENTION, Split.OUTPUT)
    yield from linear(f"{at}.kv_a_proj_with_mqa", rank + rope, hidden, Part.ATTENTION, Split.NONE)
    yield vector(f"{at}.kv_a_layernorm", rank, Part.NORM)
    yield from linear(f"{at}.kv_b_proj", heads * (nope + value), rank, Part.ATTENTION, Split.OUTPUT)
    if text.family.attention_gate:
        yield from linear(f"{at}.g_proj", heads * value, hidden, Part.ATTENTION, Split.OUTPUT)
    yield from linear(f"{at}.o_proj", hidden, heads * value, Part.ATTENTION, Split.INPUT)
    if has_indexer and _brings_indexer(text, layer):
        yield from _indexer(text, f"{at}.indexer", rank_of_queries or hidden)


def _brings_indexer(text: Text, layer: int) -> bool:
    """Layers marked ``shared`` use an earlier layer's choice."""
    types = text.keys.list("indexer_types")
    return types is None or layer >= len(types) or types[layer] != "shared"


def _indexer(text: Text, at: str, rank: int) -> Iterator[Tensor]:
    heads, dim = text.keys.need("index_n_heads"), text.keys.need("index_head_dim")
    yield from linear(f"{at}.wq_b", heads * dim, rank, Part.ATTENTION, Split.NONE)
    yield from linear(f"{at}.wk", dim, text.hidden, Part.ATTENTION, Split.NONE)
    yield vector(f"{at}.k_norm", dim, Part.NORM, copies=2)
    yield Tensor(f"{at}.weights_proj", heads, text.hidden, Part.ATTENTION, Split.NONE, is_linear=False)
