"""Layers for multi-token prediction, which checkpoints store beside the model's own."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fleet.model_reading.blocks import vector
from fleet.model_reading.feed_forward import Mixture
from fleet.model_reading.layers import decoder_tensors
from fleet.model_reading.text import Text
from fleet.tensors import Part, Split, Tensor

MOST = 64
BLOCKS = {
    "attention": ("full", "none"),
    "full_attention": ("full", "none"),
    "moe": ("mlp", "sparse"),
    "mlp": ("mlp", "dense"),
    "mamba": ("mamba", "none"),
}
"""The blocks of ``mtp_layers_block_type``."""


def mtp_tensors(text: Text, mixture: Mixture | None) -> Iterator[Tensor]:
    """All of them, as one part."""
    count = text.keys.count("num_nextn_predict_layers")
    count = text.family.mtp_layers if count is None else count
    if text.family.mtp == "none":
        return
    if count > MOST:
        key, _ = text.keys.find("num_nextn_predict_layers")
        text.keys.refuse(key, f"{count} layers for multi-token prediction are more than any model's ({MOST})")
    for number in range(count):
        for tensor in _one(text, mixture, number):
            yield replace(tensor, part=Part.MTP)


def _one(text: Text, mixture: Mixture | None, number: int) -> Iterator[Tensor]:
    stored_apart = text.family.mtp == "qwen"
    inside = replace(text, root="mtp") if stored_apart else text
    layer = number if stored_apart else text.layers + number
    name = "mtp.fc" if stored_apart else text.module(layer, "eh_proj")
    yield Tensor(name, text.hidden, 2 * text.hidden, Part.MTP, Split.NONE, is_linear=False)
    yield vector(text.module(layer, "enorm"), text.hidden, Part.MTP, copies=3)
    for mixer, half in _blocks(text, mixture):
        yield from decoder_tensors(inside, layer, mixer, half, mixture)
    for head in text.family.mtp_vocabulary:
        rows = text.keys.need("vocab_size")
        yield Tensor(text.module(layer, head), rows, text.hidden, Part.MTP, Split.VOCABULARY, is_linear=False)


def _blocks(text: Text, mixture: Mixture | None) -> Sequence[tuple[str, str]]:
    listed = text.keys.list("mtp_layers_block_type")
    if listed:
        return [BLOCKS.get(str(block), ("full", "none")) for block in listed]
    return [("full", "sparse" if mixture and not text.family.mtp_is_dense else "dense")]
