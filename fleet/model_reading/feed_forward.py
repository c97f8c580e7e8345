"""The feed-forward half of a layer: dense, a mixture of experts, or nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleet.model import Experts
from fleet.model_reading.blocks import experts, ffn, linear, vector
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.names import ALIASES
from fleet.model_reading.text import Text
from fleet.tensors import Part, Split, Tensor

RATIOS = ("expansion_ratio", "mlp_ratio")


@dataclass(frozen=True, slots=True)
class Mixture:
    """The sizes of a mixture of experts."""

    count: int
    active: int
    inner: int
    shared: int
    """Width of all shared experts together; 0 = none."""


def mixture_of(text: Text) -> Mixture | None:
    """The mixture of experts, or ``None`` for a dense model."""
    keys = text.keys
    value = keys.find("num_experts")[1]
    if isinstance(value, list):  # one entry per modality; the first is the text's
        numbers = keys.counts(keys.find("num_experts")[0]) or (0,)
        count = numbers[0]
    else:
        count = keys.count("num_experts") or 0
    if count <= 1:
        if value is None and _is_sparse_without_count(keys):
            raise Lacking(keys.named("num_experts"))
        return None
    inner = keys.size_at("moe_intermediate_size", 0)
    if not inner and text.family.experts_take_ffn_size and "moe_intermediate_size" not in keys.demanded:
        inner = keys.size_at("intermediate_size", 0)
    if not inner:
        raise Lacking(keys.named("moe_intermediate_size"))
    active = keys.size_at("num_experts_per_tok", 0)
    if not active:
        raise Lacking(keys.named("num_experts_per_tok"))
    if active > count:
        keys.refuse(keys.find("num_experts_per_tok")[0], f"{active} experts per token of {count}")
    return Mixture(count, active, inner, _shared_width(text, inner))


def _is_sparse_without_count(keys: Keys) -> bool:
    """Whether experts are described, but not how many there are; a stated null means none."""
    stated = any(spelled in keys.values for spelled in ("num_experts", *ALIASES["num_experts"]))
    return not stated and keys.has("moe_intermediate_size") and keys.has("num_experts_per_tok")


def _shared_width(text: Text, inner: int) -> int:
    keys = text.keys
    listed = isinstance(keys.find("n_shared_experts")[1], list)
    number = keys.size_at("n_shared_experts", 0) if listed else keys.count("n_shared_experts")
    stated = keys.count("shared_intermediate_size")
    if stated is not None:
        return stated * (number if number and keys.has("moe_shared_expert_intermediate_size") else 1)
    return inner * (text.family.shared_experts if number is None else number)


def dense(text: Text, layer: int, name: str = "mlp") -> Iterator[Tensor]:
    """The dense FFN of a layer."""
    keys = text.keys
    bias = next((keys.flag(key) for key in ("mlp_bias", "use_mlp_bias") if keys.has(key)), text.family.mlp_bias)
    inner = dense_width(text, layer)
    yield from ffn(text.module(layer, name), text.hidden, inner, Part.DENSE_FFN, gated=text.family.gated, bias=bias)


def dense_width(text: Text, layer: int) -> int:
    """The width of a dense layer's FFN."""
    keys, family = text.keys, text.family
    inner = keys.count(family.dense_key) if family.dense_key else None
    inner = inner or keys.size("dense_intermediate_size") or keys.size_at("intermediate_size", layer)
    if not inner:
        return _by_ratio(text)
    if family.ffn_is_halved:
        return inner // 2
    if family.ffn_is_adjusted and keys.flag("block_auto_adjust_ff_dim", default=True):
        multiple = keys.size("block_multiple_of") or 1
        return -(-int(2 * inner / 3 * _ratio(text, "block_ffn_dim_multiplier", 1)) // multiple) * multiple
    return inner * (2 if _is_double_wide(text, layer) else 1)


def _ratio(text: Text, key: str, otherwise: float) -> float:
    value = text.keys.find(key)[1]
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1000:
        return value
    return otherwise


def _is_double_wide(text: Text, layer: int) -> bool:
    shared = text.keys.count("num_kv_shared_layers") or 0
    return text.keys.flag("use_double_wide_mlp") and layer >= text.layers - shared > 0


def _by_ratio(text: Text) -> int:
    for key in RATIOS:
        if ratio := _ratio(text, key, 0):
            return int(text.hidden * ratio)
    if text.family.ffn_is_four_times:
        return 4 * text.hidden
    raise Lacking(text.keys.named(text.family.dense_key or "intermediate_size"))


def sparse(text: Text, layer: int, mixture: Mixture, name: str = "mlp") -> Iterator[Tensor]:
    """Router, routed and shared experts of a layer."""
    at, gated, latent = text.module(layer, name), text.family.gated, text.keys.size("moe_latent_size")
    chosen_among = mixture.count + (
        text.keys.count("zero_expert_num") or 0
    )  # experts that pass a token on have no weights
    yield from linear(f"{at}.gate", chosen_among, text.hidden, Part.ROUTER, Split.NONE)
    if latent:
        yield from linear(f"{at}.fc1_latent_proj", latent, text.hidden, Part.SHARED_EXPERTS, Split.NONE)
        yield from linear(f"{at}.fc2_latent_proj", text.hidden, latent, Part.SHARED_EXPERTS, Split.NONE)
    yield from experts(
        f"{at}.experts", latent or text.hidden, mixture.inner, mixture.count, gated=gated, bias=text.family.expert_bias
    )
    if text.family.vision_experts:
        yield from _vision_experts(text, f"{at}.vision_experts", mixture)
    if mixture.shared:
        shared = f"{at}.shared_expert" if text.family.shared_gate else f"{at}.shared_experts"
        yield from ffn(shared, text.hidden, mixture.shared, Part.SHARED_EXPERTS, gated=gated)
    if mixture.shared and text.family.shared_gate:
        yield vector(f"{at}.shared_expert_gate", text.hidden, Part.ROUTER)


def _vision_experts(text: Text, at: str, mixture: Mixture) -> Iterator[Tensor]:
    """Experts for images: as many as for text, their width the second of the list."""
    listed = isinstance(text.keys.find("moe_intermediate_size")[1], list)
    inner = text.keys.size_at("moe_intermediate_size", 1) if listed else mixture.inner
    yield from experts(at, text.hidden, inner or mixture.inner, mixture.count, gated=True)


def experts_of(mixture: Mixture | None, layers: int) -> Experts | None:
    """The mixture as the model states it."""
    return Experts(mixture.count, mixture.active, mixture.inner, layers) if mixture and layers else None
