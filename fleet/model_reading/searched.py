"""Models whose layers were chosen one by one by an architecture search (``block_configs``)."""

from collections.abc import Iterator
from dataclasses import replace

from fleet.model import Attention, FullAttention, Layer
from fleet.model_reading.attention import grouped
from fleet.model_reading.blocks import ffn, linear, norms
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.text import Text
from fleet.tensors import Part, Split, Tensor

ROUNDED_TO = 256
"""The width that ``ffn_mult`` means is rounded up to a multiple of this."""


def searched_layers(text: Text) -> tuple[Layer, ...]:
    """Every layer of ``block_configs``."""
    blocks = text.keys.list("block_configs") or ()
    if len(blocks) < text.layers:
        text.keys.refuse("block_configs", f"{len(blocks)} entries for num_hidden_layers {text.layers}")
    return tuple(_layer(text, number) for number in range(text.layers))


def _layer(text: Text, number: int) -> Layer:
    block = _entry(text, number)
    mixer, half = block.section("attention"), block.section("ffn")
    if mixer is None or half is None:
        raise Lacking(f"block_configs[{number}].attention", "a block names no attention or no ffn")
    attention: tuple[Attention, ...] = ()
    tensors: list[Tensor] = []
    if mixer.flag("replace_with_linear"):
        tensors += linear(
            text.module(number, "self_attn.linear_attn"), text.hidden, text.hidden, Part.ATTENTION, Split.OUTPUT
        )
    elif not mixer.flag("no_op"):
        piece = grouped(_with_heads(text, mixer), number, "full", 0)
        attention = (piece.attention,) if isinstance(piece.attention, FullAttention) else ()
        tensors += piece.tensors
    tensors += _feed_forward(text, number, half)
    tensors += norms(text.module(number, "norms"), text.hidden, 2)
    return Layer(attention, tuple(tensors))


def _entry(text: Text, number: int) -> Keys:
    entries = text.keys.list("block_configs") or ()
    block = Keys({"block": entries[number]}, text.keys.source, f"{text.keys.path}block_configs[{number}].")
    section = block.section("block")
    if section is None:
        text.keys.refuse(f"block_configs[{number}]", "null is not an object")
    return section


def _with_heads(text: Text, mixer: Keys) -> Text:
    heads = text.keys.need("num_attention_heads")
    group = mixer.size("n_heads_in_group")
    kv_heads = mixer.size("num_key_value_heads") or (heads // group if group else None)
    if not kv_heads:
        raise Lacking(f"{mixer.path}n_heads_in_group")
    stated = {**text.keys.values, "num_key_value_heads": kv_heads}
    return replace(text, keys=text.keys.with_values(stated))


def _feed_forward(text: Text, number: int, half: Keys) -> Iterator[Tensor]:
    at = text.module(number, "mlp")
    if half.flag("replace_with_linear"):
        yield from linear(f"{at}.linear_mlp", text.hidden, text.hidden, Part.DENSE_FFN, Split.OUTPUT)
    elif not half.flag("no_op"):
        inner = half.size("intermediate_size") or _by_multiplier(text, half)
        yield from ffn(at, text.hidden, inner, Part.DENSE_FFN, gated=True)


def _by_multiplier(text: Text, half: Keys) -> int:
    value = half.find("ffn_mult")[1]
    if value is None:
        raise Lacking(f"{half.path}ffn_mult")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1000:
        half.refuse("ffn_mult", f"{value!r} is not a positive number")
    inner = int(2 * value * text.hidden / 3)
    return -(-inner // ROUNDED_TO) * ROUNDED_TO
