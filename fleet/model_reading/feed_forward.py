"""The feed-forward half of a layer: dense, a mixture of experts, or nothing."""

from collections.abc import Iterator
from dataclasses import dataclass

from fleet.model import Experts
from fleet.model_reading.blocks import experts, ffn, linear, vector
from fleet.model_reading.keys import Lacking
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
        return None
    inner = keys.size_at("moe_intermediate_size", 0)
    if not inner and text.family.expert_size_is_ffn:
        inner = keys.size_at("intermediate_size", 0)
    if not inner:
        raise Lacking(f"{keys.path}moe_intermediate_size")
    active = keys.size_at("num_experts_per_tok", 0)
    if not active:
        raise Lacking(f"{keys.path}num_experts_per_tok")
    if active > count:
        keys.refuse(keys.find("num_experts_per_tok")[0], f"{active} experts per token of {count}")
    return Mixture(count, active, inner, _shared_width(text, inner))


def _shared_width(text: Text, inner: int) -> int:
    keys = text.keys
    number = keys.size_at("n_shared_experts", 0) if keys.has("n_shared_experts") else None
    stated = keys.count("shared_intermediate_size")
    if stated is not None:
        return stated * (number if number and keys.has("moe_shared_expert_intermediate_size") else 1)
    return inner * (text.family.shared_experts if number is None else number)


def dense(text: Text, layer: int, name: str = "mlp") -> Iterator[Tensor]:
    """The dense FFN of a layer."""
    keys = text.keys
    key = next((key for key in ("dense_intermediate_size", "intermediate_size_mlp") if keys.has(key)), None)
    inner = keys.need(key) if key else keys.size_at("intermediate_size", layer)
    inner = inner or _by_ratio(text)
    bias = next((keys.flag(key) for key in ("mlp_bias", "use_mlp_bias") if keys.has(key)), text.family.mlp_bias)
    wide = 2 if _is_double_wide(text, layer) else 1
    yield from ffn(
        text.module(layer, name), text.hidden, inner * wide, Part.DENSE_FFN, gated=text.family.gated, bias=bias
    )


def _is_double_wide(text: Text, layer: int) -> bool:
    shared = text.keys.count("num_kv_shared_layers") or 0
    return text.keys.flag("use_double_wide_mlp") and layer >= text.layers - shared > 0


def _by_ratio(text: Text) -> int:
    for key in RATIOS:
        ratio = text.keys.find(key)[1]
        if isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 < ratio < 1000:
            return int(text.hidden * ratio)
    if text.family.defaults.get("ffn_is_four_times"):
        return 4 * text.hidden
    raise Lacking(f"{text.keys.path}intermediate_size")


def sparse(text: Text, layer: int, mixture: Mixture, name: str = "mlp") -> Iterator[Tensor]:
    """Router, routed and shared experts of a layer."""
    at, gated, latent = text.module(layer, name), text.family.gated, text.keys.size("moe_latent_size")
    yield from linear(f"{at}.gate", mixture.count, text.hidden, Part.ROUTER, Split.NONE)
    if latent:
        yield from linear(f"{at}.fc1_latent_proj", latent, text.hidden, Part.SHARED_EXPERTS, Split.NONE)
        yield from linear(f"{at}.fc2_latent_proj", text.hidden, latent, Part.SHARED_EXPERTS, Split.NONE)
    yield from experts(
        f"{at}.experts", latent or text.hidden, mixture.inner, mixture.count, gated=gated, bias=text.family.expert_bias
    )
    if mixture.shared:
        shared = f"{at}.shared_expert" if text.family.shared_gate else f"{at}.shared_experts"
        yield from ffn(shared, text.hidden, mixture.shared, Part.SHARED_EXPERTS, gated=gated)
    if mixture.shared and text.family.shared_gate:
        yield vector(f"{at}.shared_expert_gate", text.hidden, Part.ROUTER)


def experts_of(mixture: Mixture | None, layers: int) -> Experts | None:
    """The mixture as the model states it."""
    return Experts(mixture.count, mixture.active, mixture.inner, layers) if mixture and layers else None
