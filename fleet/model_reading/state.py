"""Layers that keep a state of fixed size: gated delta networks, Kimi's, Mamba, lightning attention, convolutions."""

from collections.abc import Callable, Iterator

from fleet.model import LinearState
from fleet.model_reading.blocks import linear, vector
from fleet.model_reading.heads import heads_of
from fleet.model_reading.keys import Lacking
from fleet.model_reading.text import Piece, Text
from fleet.tensors import Part, Split, Tensor

DTYPE_KEYS = ("mamba_ssm_cache_dtype", "mamba_ssm_dtype", "ssm_cache_dtype")


def _state_bytes(text: Text, otherwise: int = 2) -> int:
    """4 where the configuration keeps the state in float32, else the model's own two bytes."""
    stated = next((text.keys.text(key) for key in DTYPE_KEYS if text.keys.has(key)), None)
    return {None: otherwise, "float32": 4}.get(stated, 2)


def _matrices(at: str, hidden: int, sizes: tuple[tuple[str, int], ...]) -> Iterator[Tensor]:
    for name, out in sizes:
        yield from linear(f"{at}.{name}", out, hidden, Part.STATE, Split.OUTPUT)


def _small(at: str, size: int) -> Tensor:
    """Convolutions, decays and norms of a layer, together."""
    return vector(f"{at}.conv1d", size, Part.STATE, Split.OUTPUT)


def gated_delta(text: Text, layer: int) -> Piece:
    """A gated delta network (Qwen3-Next, Qwen3.5)."""
    keys = text.keys
    key_heads, value_heads = keys.need("linear_num_key_heads"), keys.need("linear_num_value_heads")
    key_dim, value_dim = keys.need("linear_key_head_dim"), keys.need("linear_value_head_dim")
    kernel = keys.size("conv_kernel", 4) or 4
    mixed, values = 2 * key_heads * key_dim + value_heads * value_dim, value_heads * value_dim
    at = text.module(layer, "linear_attn")
    sizes = (("in_proj_qkv", mixed), ("in_proj_z", values))
    tensors = [
        *_matrices(at, text.hidden, sizes),
        Tensor(f"{at}.in_proj_ba", 2 * value_heads, text.hidden, Part.STATE, Split.OUTPUT),
        _small(at, mixed * kernel + 2 * value_heads + value_dim),
        *linear(f"{at}.out_proj", text.hidden, values, Part.STATE, Split.INPUT),
    ]
    state = LinearState(key_heads, value_heads * key_dim * value_dim, _state_bytes(text), mixed * (kernel - 1))
    return Piece(state, tuple(tensors))


def kimi_delta(text: Text, layer: int) -> Piece:
    """Kimi delta attention: a decay per channel from a low-rank gate."""
    section = text.keys.section("linear_attn_config") or text.keys
    heads = section.size("linear_num_heads") or section.need(
        "num_heads" if section is not text.keys else "linear_num_heads"
    )
    dim = section.size("linear_head_dim") or section.need("head_dim")
    kernel = section.size("conv_kernel") or section.size("short_conv_kernel_size") or 4
    wide, at = heads * dim, text.module(layer, "self_attn")
    whole = text.family.state_gates_are_whole
    tensors = [
        *_matrices(at, text.hidden, tuple((name, wide) for name in ("q_proj", "k_proj", "v_proj"))),
        *_matrices(
            at, text.hidden, (("f_proj", wide), ("g_proj", wide)) if whole else (("f_a_proj", dim), ("g_a_proj", dim))
        ),
        *_matrices(at, text.hidden, (("b_proj", heads),)),
        *_matrices(at, dim, () if whole else (("f_b_proj", wide), ("g_b_proj", wide))),
        _small(at, 3 * wide * kernel + wide + heads + dim),
        *linear(f"{at}.o_proj", text.hidden, wide, Part.STATE, Split.INPUT),
    ]
    return Piece(LinearState(heads, heads * dim * dim, _state_bytes(text, 4), 3 * wide * (kernel - 1)), tuple(tensors))


def mamba1(text: Text, layer: int) -> Piece:
    """A selective state space (Mamba, Jamba)."""
    keys, hidden = text.keys, text.hidden
    inner = keys.size("intermediate_size") if text.family.is_state_only else None
    inner = inner or (keys.size("expand", 2) or 2) * hidden
    states, kernel = keys.need("ssm_state_size"), keys.size("conv_kernel", 4) or 4
    rank = keys.size("time_step_rank") if keys.find("time_step_rank")[1] != "auto" else None
    rank = rank or -(-hidden // 16)
    at = text.module(layer, "mamba")
    tensors = [
        *linear(f"{at}.in_proj", 2 * inner, hidden, Part.STATE, Split.OUTPUT),
        *linear(f"{at}.x_proj", rank + 2 * states, inner, Part.STATE, Split.INPUT),
        *linear(f"{at}.dt_proj", inner, rank, Part.STATE, Split.OUTPUT),
        _small(at, inner * (kernel + 3 + states)),
        *linear(f"{at}.out_proj", hidden, inner, Part.STATE, Split.INPUT),
    ]
    return Piece(LinearState(inner, inner * states, _state_bytes(text), inner * (kernel - 1)), tuple(tensors))


def mamba2(text: Text, layer: int) -> Piece:
    """A state space with heads (Mamba-2, Nemotron-H, Granite 4, Bamba, Falcon-H1)."""
    keys, hidden = text.keys, text.hidden
    heads = keys.size("mamba_num_heads") or keys.need(
        "num_attention_heads" if text.family.is_state_only else "mamba_num_heads"
    )
    wide = keys.size("mamba_d_ssm") or (keys.size("expand", 2) or 2) * hidden
    stated = "head_dim" if text.family.is_state_only else "mamba_head_dim"
    dim = keys.size(stated) if keys.find(stated)[1] != "auto" else None
    inner = heads * dim if dim else wide
    groups, states = keys.size("n_groups", 1) or 1, keys.need("ssm_state_size")
    kernel, mixed = keys.size("conv_kernel", 4) or 4, inner + 2 * groups * states
    at = text.module(layer, "mamba")
    tensors = [
        *linear(f"{at}.in_proj", inner + mixed + heads, hidden, Part.STATE, Split.OUTPUT),
        _small(at, mixed * (kernel + 1) + 3 * heads + inner),
        *linear(f"{at}.out_proj", hidden, inner, Part.STATE, Split.INPUT),
    ]
    state = LinearState(heads, inner * states, _state_bytes(text), mixed * (kernel - 1))
    return Piece(state, tuple(tensors))


def lightning(text: Text, layer: int) -> Piece:
    """Lightning attention (MiniMax-Text-01, M1)."""
    shape = heads_of(text, layer, "full")
    wide, at = shape.queries * shape.key_dim, text.module(layer, "self_attn")
    tensors = [
        *_matrices(at, text.hidden, (("qkv_proj", 3 * wide), ("output_gate", wide))),
        vector(f"{at}.norm", wide, Part.NORM, Split.OUTPUT),
        *linear(f"{at}.out_proj", text.hidden, wide, Part.STATE, Split.INPUT),
    ]
    return Piece(LinearState(shape.queries, wide * shape.key_dim, 4, 0), tuple(tensors))


def short_convolution(text: Text, layer: int) -> Piece:
    """A gated short convolution (LFM2)."""
    kernel, hidden, at = text.keys.size("conv_kernel", 3) or 3, text.hidden, text.module(layer, "conv")
    tensors = [
        *linear(f"{at}.in_proj", 3 * hidden, hidden, Part.STATE, Split.OUTPUT),
        _small(at, hidden * kernel),
        *linear(f"{at}.out_proj", hidden, hidden, Part.STATE, Split.INPUT),
    ]
    return Piece(LinearState(hidden, 0, 2, hidden * (kernel - 1)), tuple(tensors))


def state_layer(text: Text, layer: int) -> Piece:
    """A layer with a state: of the kind that the architecture has, else of the kind that its keys describe."""
    kind = text.family.state
    if not kind and text.keys.has("linear_num_key_heads"):
        kind = "gdn"
    if not kind and text.keys.has("ssm_state_size"):
        kind = "mamba2" if text.keys.has("mamba_num_heads") else "mamba1"
    if not kind:
        raise Lacking("layer_types", "what its layers with a state are made of is not known")
    return STATES[kind](text, layer)


STATES: dict[str, Callable[[Text, int], Piece]] = {
    "gdn": gated_delta,
    "kda": kimi_delta,
    "mamba1": mamba1,
    "mamba2": mamba2,
    "lightning": lightning,
    "conv": short_convolution,
}
"""The readers of each kind of state."""
