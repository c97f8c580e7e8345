"""Layers: mixer, feed-forward half and norms put together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleet.model import Attention, Layer, UnknownAttention
from fleet.model_reading.attention import grouped
from fleet.model_reading.blocks import norms
from fleet.model_reading.compressed import compressed
from fleet.model_reading.crossing import crossing
from fleet.model_reading.feed_forward import Mixture, dense, mixture_of, sparse
from fleet.model_reading.keys import Lacking
from fleet.model_reading.latent import latent
from fleet.model_reading.layer_plan import feed_forwards, mixers
from fleet.model_reading.overrides import of_layer
from fleet.model_reading.searched import searched_layers
from fleet.model_reading.state import STATES, state_layer
from fleet.model_reading.text import Piece, Text
from fleet.tensors import Tensor


@dataclass(frozen=True, slots=True)
class Stack:
    """All layers, the mixture of experts, and what could not be read."""

    layers: tuple[Layer, ...]
    mixture: Mixture | None
    sparse_layers: int
    lacking: Lacking | None
    """What the weights lack."""


def stack(text: Text) -> Stack:
    """Read every layer."""
    if text.keys.has("block_configs"):
        return _searched(text)
    lacking: Lacking | None = None
    mixture: Mixture | None = None
    try:
        mixture = mixture_of(text)
    except Lacking as error:
        lacking = error
    try:
        kinds = mixers(text)
    except Lacking as error:
        return _unread(text, error)
    ffns: Sequence[str] = ("none",) * len(kinds)
    try:
        ffns = feed_forwards(text, kinds, has_experts=mixture is not None) if text.family.has_ffn else ffns
    except Lacking as error:
        lacking = lacking or error
    layers: list[Layer] = []
    for layer, (kind, half) in enumerate(zip(kinds, ffns, strict=True)):
        one, lack = _layer(text, layer, kind, half, mixture)
        layers.append(one)
        lacking = lacking or lack
    return Stack(tuple(layers), mixture, ffns.count("sparse") if mixture else 0, lacking)


def _searched(text: Text) -> Stack:
    try:
        return Stack(searched_layers(text), None, 0, None)
    except Lacking as lack:
        return _unread(text, lack)


def _unread(text: Text, lack: Lacking) -> Stack:
    return Stack((Layer((_unknown(lack),), ()),) * text.layers, None, 0, lack)


def _layer(text: Text, layer: int, kind: str, half: str, mixture: Mixture | None) -> tuple[Layer, Lacking | None]:
    try:
        text = of_layer(text, layer)
    except Lacking as error:
        return Layer((_unknown(error),), ()), error
    pieces, lacking = _mixer(text, layer, kind)
    tensors = [tensor for piece in pieces for tensor in piece.tensors]
    try:
        tensors.extend(feed_forward(text, layer, half, mixture))
    except Lacking as error:
        lacking = lacking or error
    tensors.extend(_norms(text, layer))
    return Layer(tuple(piece.attention for piece in pieces), tuple(tensors)), lacking


def decoder_tensors(text: Text, layer: int, kind: str, half: str, mixture: Mixture | None) -> Iterator[Tensor]:
    """The weights of one layer; raises `Lacking`."""
    if kind not in {"mlp", "moe"}:
        for piece in _pieces(text, layer, kind):
            yield from piece.tensors
    yield from feed_forward(text, layer, half, mixture)
    yield from _norms(text, layer)


def feed_forward(text: Text, layer: int, half: str, mixture: Mixture | None) -> Iterator[Tensor]:
    """The feed-forward half of a layer."""
    if half == "dense" or (half == "sparse" and text.family.dense_beside_experts):
        for _ in range(2 if text.family.doubled else 1):
            yield from dense(text, layer)
    if half == "sparse":
        if mixture is None:
            raise Lacking(text.keys.named("num_experts"))
        yield from sparse(text, layer, mixture)


def _mixer(text: Text, layer: int, kind: str) -> tuple[tuple[Piece, ...], Lacking | None]:
    if kind in {"mlp", "moe"}:
        return (), None
    try:
        return tuple(_pieces(text, layer, kind)), None
    except Lacking as lack:
        return (Piece(_unknown(lack), ()),), lack


def _unknown(lack: Lacking) -> Attention:
    return UnknownAttention(lack.message, key=lack.key)


def _pieces(text: Text, layer: int, kind: str) -> Iterator[Piece]:
    family = text.family
    if family.is_compressed:
        yield compressed(text, layer)
        return
    if kind.startswith("?"):
        raise _unnamed(text, kind[1:])
    if kind in {"linear", "mamba"}:
        yield state_layer(text, layer)
        return
    if kind == "conv":
        yield STATES["conv"](text, layer)
        return
    if family.is_parallel_hybrid:
        yield state_layer(text, layer)
    for _ in range(2 if family.doubled else 1):
        yield _attention(text, layer, kind)


def _unnamed(text: Text, kind: str) -> Lacking:
    """Why a layer can't be read: its kind is not known, or not stated (the empty kind)."""
    if kind:
        return Lacking("layer_types", f"layers of kind {kind!r} are not known")
    stated = "listed_layers" in text.keys.spelled
    key = text.keys.named("listed_layers" if stated else "layer_types")
    return Lacking(key, f"the configuration does not state {key}: which layers keep a state is not known")


def _attention(text: Text, layer: int, kind: str) -> Piece:
    keys = text.keys
    window = keys.size_at("sliding_window", layer) if kind == "sliding" else None
    if kind == "sliding" and not window:
        window = keys.size("attention_window_size") or keys.need("sliding_window")
    if kind == "chunked":
        window = keys.need("attention_chunk_size")
    if kind == "cross":
        return crossing(text, layer, text.source_tokens)
    if keys.has("kv_lora_rank"):
        return latent(text, layer, window or 0)
    shared = keys.count("num_kv_shared_layers") or 0
    return grouped(text, layer, kind, window or 0, shared=shared > 0 and layer >= text.layers - shared)


def _norms(text: Text, layer: int) -> Iterator[Tensor]:
    yield from norms(text.module(layer, "norms"), text.hidden, text.family.norms, bias=text.family.norm_bias)
