"""Grouped-query attention: what it keeps, and its projections."""

from collections.abc import Iterator

from fleet.model import Attention, ChunkedAttention, FullAttention, SlidingAttention, UncachedAttention
from fleet.model_reading.blocks import linear, vector
from fleet.model_reading.families import QkNorm
from fleet.model_reading.heads import Heads, heads_of
from fleet.model_reading.text import Piece, Text
from fleet.tensors import Part, Split, Tensor

BIAS_KEYS = ("attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias", "use_bias", "bias")


def grouped(text: Text, layer: int, kind: str, window: int, *, shared: bool = False) -> Piece:
    """Attention of one layer; ``window`` is that of a sliding or chunked layer, ``shared`` reads another's cache."""
    heads = heads_of(text, layer, kind)
    return Piece(_cache(text, heads, kind, window, shared=shared), tuple(_weights(text, layer, kind, heads)))


def _cache(text: Text, heads: Heads, kind: str, window: int, *, shared: bool) -> Attention:
    if shared or text.family.is_encoder:
        return UncachedAttention(heads.queries, heads.keys_values)
    sizes = (heads.queries, heads.keys_values, heads.key_dim, heads.value_dim)
    if kind == "sliding":
        return SlidingAttention(*sizes, window)
    if kind == "chunked":
        return ChunkedAttention(*sizes, window)
    return FullAttention(*sizes)


def _weights(text: Text, layer: int, kind: str, heads: Heads) -> Iterator[Tensor]:
    family, hidden = text.family, text.hidden
    stated = next((text.keys.flag(key) for key in BIAS_KEYS if text.keys.has(key)), None)
    bias = family.qkv_bias if stated is None else stated
    out_bias = text.keys.flag("attention_out_bias", default=bias and family.out_bias)
    at = text.module(layer, "self_attn")
    out = heads.queries * heads.value_dim
    gate = 2 if text.keys.flag("attn_output_gate", default=family.output_gate) else 1
    rank = text.keys.size("share_q_dim")
    if rank:
        yield from linear(f"{at}.wq", rank, hidden, Part.ATTENTION, Split.NONE)
    yield from linear(
        f"{at}.q_proj", heads.queries * heads.key_dim * gate, rank or hidden, Part.ATTENTION, Split.OUTPUT, bias=bias
    )
    yield from _keys_and_values(text, at, kind, heads, bias=bias)
    if family.attention_gate:
        yield from linear(f"{at}.gate_proj", out, hidden, Part.ATTENTION, Split.OUTPUT)
    yield from linear(f"{at}.o_proj", hidden, out, Part.ATTENTION, Split.INPUT, bias=out_bias)
    yield from _qk_norms(text, at, heads)


def _keys_and_values(text: Text, at: str, kind: str, heads: Heads, *, bias: bool) -> Iterator[Tensor]:
    count = heads.keys_values
    yield from linear(
        f"{at}.k_proj", count * heads.key_dim, text.hidden, Part.ATTENTION, Split.KV_HEADS, bias=bias, heads=count
    )
    if kind != "full" or not text.keys.flag("attention_k_eq_v"):
        yield from linear(
            f"{at}.v_proj", count * heads.value_dim, text.hidden, Part.ATTENTION, Split.KV_HEADS, bias=bias, heads=count
        )


def _qk_norms(text: Text, at: str, heads: Heads) -> Iterator[Tensor]:
    norm = text.family.qk_norm
    if norm is QkNorm.NONE or not text.keys.flag("use_qk_norm", default=True):
        return
    whole = norm is QkNorm.FULL
    yield vector(f"{at}.q_norm", heads.key_dim * (heads.queries if whole else 1), Part.NORM)
    yield vector(f"{at}.k_norm", heads.key_dim * (heads.keys_values if whole else 1), Part.NORM)
