"""The plain transformer as which an architecture is read that is not known by name.

It is one only where nothing in the configuration speaks of more: a section or a size that this reading does not use
belongs to weights that it would not count.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from fleet.model_reading.families import Family, Windows
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.names import ALIASES

GATED = frozenset({"silu", "swish", "swiglu", "geglu", "reglu"})
NOT_GATED = frozenset({"relu", "relu2", "xielu", "gelu_new", "squared_relu"})
"""Activations that say how many first matrices an FFN has; plain ``gelu`` is used with one and with two."""
SIZE = re.compile(
    r"(?:^|_)(?:num|n)_|_per_"
    r"|(?:^|_)(?:sizes?|dims?|ranks?|widths?|depths?|channels|features|layers?|heads?|experts?|groups?|blocks?"
    r"|codebooks?|stacks?|cycles|loops|networks|flows|filters|kernels?|factors?)$"
)
"""Names of whole numbers that size or count something."""
_OF_AN_ENCODER = ("encoder_layers", "encoder_ffn_dim", "encoder_attention_heads")
TEXT = frozenset({*ALIASES, *(name for spellings in ALIASES.values() for name in spellings)} - {*_OF_AN_ENCODER}) | {
    *("attention_chunk_size", "dense_intermediate_size", "global_attn_every_n_layers", "global_head_dim"),
    *("hidden_size_per_layer_input", "index_head_dim", "index_n_heads", "kv_lora_rank", "q_lora_rank"),
    *("linear_head_dim", "linear_key_head_dim", "linear_num_heads", "linear_num_key_heads", "linear_num_value_heads"),
    *("linear_value_head_dim", "max_window_layers", "moe_latent_size", "num_attention_heads_per_layer"),
    *("num_global_key_value_heads", "num_key_value_heads_per_layer", "num_kv_shared_layers", "qk_nope_head_dim"),
    *("qk_rope_head_dim", "share_q_dim", "swa_head_dim", "swa_num_attention_heads", "swa_num_key_value_heads"),
    *("swa_v_head_dim", "v_head_dim", "vocab_size_per_layer_input"),
}
"""What the plain reading of a language model uses."""
_OF_LAYERS = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim")
TOWER = frozenset({*_OF_LAYERS, *(name for key in _OF_LAYERS for name in ALIASES[key]), *_OF_AN_ENCODER}) | {
    *("intermediate_size", "depth", "embed_dim", "image_size", "in_channels", "max_num_tiles", "merge_kernel_size"),
    *("num_channels", "num_global_layers", "num_mel_bins", "num_position_embeddings", "out_hidden_size", "patch_size"),
    *(
        "pos_emb_width",
        "init_pos_emb_width",
        "position_embedding_size",
        "spatial_merge_size",
        "temporal_patch_size",
        "vision_output_dim",
    ),
    *("vocab_size", "projection_dim", "window_size"),
}
"""What the reading of a tower uses; and what is not loaded to write text, such as a head for comparing."""
WRAPPER = frozenset({"pixel_shuffle_factor", "scale_factor", "downsample_factor", "projector_hidden_size"}) | {
    *("projection_dim", "image_size", "patch_size"),
}
"""What the reading of projectors uses of a model around a language model."""
WITHOUT_WEIGHTS = frozenset(
    {
        *("n_group", "num_expert_group", "num_expert_groups", "topk_group", "num_return_sequences", "num_beams"),
        *("num_beam_groups", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "chunk_size_feed_forward"),
        *("chunk_size", "mamba_chunk_size", "block_size", "num_random_blocks", "qk_head_dim", "rotary_dim"),
        *("rope_dim", "rope_factor", "original_num_layers", "num_patches", "spatial_merge_size", "tokens_per_second"),
        *("mm_tokens_per_image", "num_logits_to_keep", "num_samples", "num_labels", "num_local_blocks"),
        *("num_image_tokens", "position_id_per_seconds"),
    }
)
"""Whole numbers that look like sizes, but choose, cut or search."""


def generic_family(keys: Keys) -> Family:
    """A plain transformer with one or two first matrices, as the activation says."""
    return Family(tied=None, windows=Windows.ALL, experts_take_ffn_size=False, gated=_activation(keys) not in NOT_GATED)


def check_generic(outer: Keys, keys: Keys) -> None:
    """Raise `Lacking` where a plain transformer would be a guess."""
    if _activation(keys) not in GATED | NOT_GATED:
        raise Lacking("hidden_act", "the architecture is not known, and its activation does not say how many matrices")
    found = next(_beyond(outer, keys), None)
    if found:
        raise Lacking(found, f"the architecture is not known, and what {found} says of it is not read")


def check_wrapper(outer: Keys) -> None:
    """Raise `Lacking` where a model around a language model that is known has sizes that are not read."""
    found = next(chain(_sizes(outer, TEXT | WRAPPER), _of_towers(outer)), None) if outer.has("text_config") else None
    if found:
        raise Lacking(found, f"the architecture is not known, and what {found} says of it is not read")


def _beyond(outer: Keys, keys: Keys) -> Iterator[str]:
    """Adapters and sizes that the plain reading does not use; other sections are named for every architecture."""
    for section in (outer, keys) if keys.path else (outer,):
        adapter = section.find("adapter_config")[1]
        if isinstance(adapter, Mapping) and adapter:
            yield f"{section.path}adapter_config"
        yield from _sizes(section, TEXT)
    yield from _of_towers(outer)


def _of_towers(outer: Keys) -> Iterator[str]:
    for name in ("vision_config", "audio_config"):
        tower = outer.section(name)
        if tower is not None:
            yield from _sizes(tower, TOWER)


def _sizes(section: Keys, read: frozenset[str]) -> Iterator[str]:
    for name, value in section.values.items():
        counts = isinstance(value, int) and not isinstance(value, bool) and value > 1
        if counts and name not in read and name not in WITHOUT_WEIGHTS and SIZE.search(name):
            yield f"{section.path}{name}"


def _activation(keys: Keys) -> str:
    for name in ("hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act"):
        value = keys.find(name)[1]
        if isinstance(value, str):
            return value.lower()
    return ""
