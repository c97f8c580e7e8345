"""What each layer is: which attention or state it has, and whether its FFN is dense, sparse or absent."""

import re
from collections.abc import Mapping, Sequence

from fleet.model_reading.families import Windows
from fleet.model_reading.text import Text

KINDS = {
    "full_attention": "full",
    "attention": "full",
    "global": "full",
    "global_attention": "full",
    "sliding_attention": "sliding",
    "local": "sliding",
    "local_attention": "sliding",
    "sliding_window": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "linear",
    "mamba": "mamba",
    "mamba2": "mamba",
    "indexed_attention": "full",
    "deepseek_sparse_attention": "full",
    "conv": "conv",
    "mlp": "mlp",
    "moe": "moe",
}
PATTERN = {"M": "mamba", "*": "full", "E": "moe", "-": "mlp"}
"""The letters of ``hybrid_override_pattern``."""


_INDICES = (
    ("full_attn_idxs", "full", "conv"),
    ("attn_layer_indices", "full", "mamba"),
    ("cross_attention_layers", "cross", "full"),
)
"""Keys that list the layers of one kind, and what the others are."""


def mixers(text: Text) -> tuple[str, ...]:
    """The kind of every layer's mixer, in the words of `KINDS`."""
    for reader in (_by_pattern, _by_list, _by_indices, _by_period, _by_window):
        found = reader(text)
        if found is not None:
            return tuple(found)
    return (_unstated(text),) * text.layers


def _unstated(text: Text) -> str:
    """Of a configuration that lists no layers: one kind for all, but not of a hybrid."""
    family = text.family
    if family.is_state_only:
        return "linear"
    return "?" if family.state and not family.is_parallel_hybrid else "full"


def _by_pattern(text: Text) -> Sequence[str] | None:
    pattern = text.keys.find("hybrid_override_pattern")[1]
    if not isinstance(pattern, str):
        return None
    letters = pattern.replace("|", "")
    unknown = next((letter for letter in letters if letter not in PATTERN), None)
    if unknown:
        text.keys.refuse("hybrid_override_pattern", f"{unknown!r} is none of {', '.join(PATTERN)}")
    return _exactly(text, "hybrid_override_pattern", [PATTERN[letter] for letter in letters])


def _by_list(text: Text) -> Sequence[str] | None:
    for key in ("layers_block_type", "layer_types", "layer_block_types", "block_types", "attention_layers"):
        values = text.keys.list(key)
        if values is None:
            continue
        named = [KINDS.get(value, f"?{value}") if isinstance(value, str) else f"?{value}" for value in values]
        if key == "block_types" and named:
            named = [named[at % len(named)] for at in range(text.layers)]
        return _exactly(text, key, named)
    values = text.keys.list("attn_type_list")
    return (
        None if values is None else _exactly(text, "attn_type_list", ["linear" if v == 0 else "full" for v in values])
    )


def _exactly(text: Text, key: str, values: Sequence[str]) -> Sequence[str]:
    if len(values) < text.layers:
        text.keys.refuse(key, f"{len(values)} entries for num_hidden_layers {text.layers}")
    return values[: text.layers]


def _by_indices(text: Text) -> Sequence[str] | None:
    keys = text.keys
    section = keys.section("linear_attn_config") if isinstance(keys.find("linear_attn_config")[1], Mapping) else None
    if section and section.has("full_attn_layers"):
        full = set(section.counts("full_attn_layers") or ())
        return ["full" if layer + 1 in full else "linear" for layer in range(text.layers)]
    for key, chosen_kind, other in _INDICES:
        chosen = keys.counts(key)
        if chosen is not None:
            named = frozenset(chosen)
            return [chosen_kind if layer in named else other for layer in range(text.layers)]
    marks = keys.counts("hybrid_layer_pattern")
    if marks is not None:
        return _exactly(text, "hybrid_layer_pattern", ["sliding" if mark else "full" for mark in marks])
    return None


def _by_period(text: Text) -> Sequence[str] | None:
    keys, layers = text.keys, range(text.layers)
    period = keys.size("attn_layer_period")
    if period:
        offset = keys.count("attn_layer_offset") or 0
        return ["full" if layer % period == offset else "mamba" for layer in layers]
    interval = keys.size("full_attention_interval")
    if interval:
        return ["full" if (layer + 1) % interval == 0 else "linear" for layer in layers]
    if keys.has("attention_chunk_size"):
        return _chunked(text)
    return None


def _chunked(text: Text) -> Sequence[str]:
    """Layers without rotary positions see everything, the others their chunk."""
    marks = text.keys.counts("no_rope_layers") or ()
    if marks:
        return _exactly(text, "no_rope_layers", ["chunked" if mark else "full" for mark in marks])
    every = text.keys.size("no_rope_layer_interval", 4) or 4
    return ["full" if (layer + 1) % every == 0 else "chunked" for layer in range(text.layers)]


def _by_window(text: Text) -> Sequence[str] | None:
    keys, rule, layers = text.keys, text.family.windows, range(text.layers)
    if not keys.has("sliding_window") or rule is Windows.NEVER:
        return None
    if keys.has("use_sliding_window") or rule is Windows.OPT_IN:
        first = keys.count("max_window_layers") or 0
        used = keys.flag("use_sliding_window")
        return ["sliding" if used and layer >= first else "full" for layer in layers]
    pattern = keys.find("sliding_window_pattern")[1]
    if isinstance(pattern, str) and pattern:
        return ["sliding" if pattern[layer % len(pattern)] == "L" else "full" for layer in layers]
    every = keys.size("sliding_window_pattern") or keys.size("global_attn_every_n_layers") or text.family.window_pattern
    if rule is Windows.EVEN:
        return ["full" if layer % 2 else "sliding" for layer in layers]
    if every:
        return ["full" if (layer + 1) % every == 0 else "sliding" for layer in layers]
    keys.demand("listed_layers")
    return ["sliding"] * text.layers


def feed_forwards(text: Text, kinds: Sequence[str], *, has_experts: bool) -> tuple[str, ...]:
    """Whether every layer's FFN is dense, sparse or absent."""
    if any(kind in {"mlp", "moe"} for kind in kinds):
        return tuple({"mlp": "dense", "moe": "sparse"}.get(kind, "none") for kind in kinds)
    if not has_experts:
        return ("dense",) * text.layers
    return tuple("sparse" if is_sparse else "dense" for is_sparse in _sparse_layers(text))


def _sparse_layers(text: Text) -> Sequence[bool]:
    keys, layers = text.keys, range(text.layers)
    listed = keys.list("mlp_layer_types")
    if listed is not None:
        return [kind != "dense" for kind in _exactly(text, "mlp_layer_types", [str(kind) for kind in listed])]
    for key in ("moe_layers", "moe_layers_enum"):
        chosen = _numbers(text, key)
        if chosen:
            return [layer in chosen for layer in layers]
    frequency = keys.find("moe_layer_freq")[1]
    if isinstance(frequency, list):
        return [bool(mark) for mark in _exactly(text, "moe_layer_freq", frequency)]
    dense = frozenset(keys.counts("mlp_only_layers") or ())
    return [layer not in dense and _is_sparse(text, layer) for layer in layers]


def _numbers(text: Text, key: str) -> frozenset[int]:
    value = text.keys.find(key)[1]
    if isinstance(value, str):
        return frozenset(int(part) for part in value.split(",") if re.fullmatch(r"\s*[0-9]{1,9}\s*", part))
    return frozenset(text.keys.counts(key) or ())


def _is_sparse(text: Text, layer: int) -> bool:
    keys = text.keys
    first = keys.count("first_dense_layers") or keys.count("moe_layer_start_index") or 0
    if layer < first:
        return False
    if keys.has("expert_layer_period"):
        return layer % keys.need("expert_layer_period") == (keys.count("expert_layer_offset") or 0)
    for key in ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", "moe_layer_frequency"):
        step = keys.count(key)
        if step and step > 1:
            return (layer + 1) % step == 0
    step = keys.count("moe_layer_freq") or 1
    return layer % step == 0
