"""Towers for images and sounds, and the projectors behind them."""

from collections.abc import Iterator

from fleet.model import Missing
from fleet.model_reading.class_defaults import class_defaults
from fleet.model_reading.encoder_decoder import encoder
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.projectors import projector
from fleet.tensors import Part, Split, Tensor

SECTIONS = {"vision_config": "image", "audio_config": "audio"}
GATED = (
    "pixtral",
    "qwen2_5_vl",
    "qwen2_5_omni_vision",
    "gemma4_vision",
    "glm4v",
    "glm_ocr",
    "exaone4_5_vision",
    "aimv2",
)
"""Vision towers with two first matrices in their FFNs."""
CONFORMERS = {"gemma3n_audio": 24, "gemma4_audio": 24}
"""Squares of the width that one block of a conformer holds."""
WITH_HEADS = frozenset({"modernvbert"})
"""Models that load the pooling head of their vision tower: attention and an FFN as in its blocks."""
BACKBONES = {"mobilenetv5_300m_enc": 300_000_000}
"""Convolutional towers that a configuration names without sizes, by their published parameter counts."""


def tower_tensors(outer: Keys, hidden: int) -> Iterator[Tensor]:
    """The towers that the configuration names."""
    config = outer.section("thinker_config") or outer
    for name in SECTIONS:
        section = config.section(name)
        if section is None:
            continue
        role = name.removesuffix("_config")
        kind = section.text("model_type") or config.text("model_type")
        known = {**class_defaults(kind, role), "model_type": kind}
        keys = Keys(section.values, section.source, section.path, known)
        yield from _vision(keys, config, hidden) if role == "vision" else _audio(keys, hidden)


def unstated_towers(outer: Keys, architecture: str) -> Iterator[Missing]:
    """A note where a part that writes no text is left out, or a tower of which the configuration says nothing."""
    sees = any(outer.has(key) for key in ("image_token_id", "image_token_index", "vision_start_token_id"))
    has_text = outer.has("text_config")
    if outer.has("talker_config"):
        yield Missing("tower", "talker_config", "the talker and its vocoder are left out of the weights")
    if not outer.has("vision_config") and has_text and (sees or architecture == "Llama4ForConditionalGeneration"):
        yield Missing("tower", "vision_config", "the vision tower is not described: its weights are left out")


def modalities_of(outer: Keys) -> frozenset[str]:
    """What the model takes in."""
    config = outer.section("thinker_config") or outer
    return frozenset({"text", *(kind for name, kind in SECTIONS.items() if config.has(name))})


def _vision(vision: Keys, config: Keys, hidden: int) -> Iterator[Tensor]:
    backbone = vision.find("architecture")[1]
    if isinstance(backbone, str) and backbone in BACKBONES:
        yield Tensor("model.vision_tower", BACKBONES[backbone], 1, Part.ENCODER, Split.NONE)
        return
    width = vision.size("embed_dim") or vision.need("hidden_size")
    patch = _side(vision, "patch_size")
    frames = _side(vision, "temporal_patch_size", 1)
    channels = vision.size("in_channels") or vision.size("num_channels") or 3
    yield _whole("patch_embed", width * channels * patch * patch * frames)
    yield _whole("positions", _positions(vision, patch) * width)
    depth = (vision.size("depth") or vision.need("num_hidden_layers")) + (vision.size("num_global_layers") or 0)
    yield Tensor("model.visual.blocks", _block(vision, width), 1, Part.ENCODER, Split.NONE, copies=depth)
    if vision.flag("vision_use_head", default=config.text("model_type") in WITH_HEADS):
        yield _whole("head", _block(vision, width))
    yield from projector(vision, config, width, hidden)


def _block(vision: Keys, width: int) -> int:
    kind = vision.text("model_type") or ""
    inner = _inner(vision, width, kind)
    matrices = 3 if kind.startswith(GATED) else 2
    head_dim, heads = vision.size("head_dim"), vision.size("num_attention_heads")
    across = head_dim * heads if head_dim and heads else width
    kv_heads = vision.size("num_key_value_heads")
    narrow = across * kv_heads // heads if kv_heads and heads else across
    return 2 * width * (across + narrow) + matrices * width * inner + 9 * width + inner


def _inner(vision: Keys, width: int, kind: str) -> int:
    if kind.startswith(("glm4v", "glm46v")):  # its intermediate_size is the merger's
        return vision.need("out_hidden_size")
    ratio = vision.find("mlp_ratio")[1]
    if vision.has("intermediate_size"):
        return vision.need("intermediate_size")
    if isinstance(ratio, int | float) and not isinstance(ratio, bool) and 0 < ratio < 100:
        return int(width * ratio)
    raise Lacking(f"{vision.path}intermediate_size")


def _positions(vision: Keys, patch: int) -> int:
    stated = vision.size("num_position_embeddings")
    if stated:
        return stated
    if vision.has("position_embedding_size"):
        return 2 * vision.need("position_embedding_size")
    for key in ("pos_emb", "init_pos_emb"):
        if vision.has(f"{key}_height"):
            return vision.need(f"{key}_height") * vision.need(f"{key}_width")
    if (vision.text("model_type") or "").startswith(("pixtral", "qwen2")):
        return 0
    side = _side(vision, "image_size", 0) // patch
    tiles = vision.size("max_num_tiles")
    return side * side + 1 + (9 * tiles * (side * side + 1) if tiles else 0)


def _side(vision: Keys, name: str, otherwise: int | None = None) -> int:
    """A length that may be written for both sides."""
    if not vision.has(name) and otherwise is not None:
        return otherwise
    value = vision.size_at(name, 0) or 0
    if not value:
        raise Lacking(f"{vision.path}{name}")
    return value


def _audio(audio: Keys, hidden: int) -> Iterator[Tensor]:
    kind = audio.text("model_type") or ""
    if kind in CONFORMERS:
        width = audio.need("hidden_size")
        depth = audio.size("conf_num_hidden_layers") or audio.need("num_hidden_layers")
        yield Tensor("model.audio_tower", CONFORMERS[kind] * width, width, Part.ENCODER, Split.NONE, copies=depth)
    else:
        yield from encoder(audio, "model.audio_tower")
        width = audio.size("d_model") or audio.need("hidden_size")
    yield Tensor("model.audio_projector", hidden, width, Part.ENCODER, Split.NONE)


def _whole(name: str, size: int) -> Tensor:
    return Tensor(f"model.visual.{name}", size, 1, Part.ENCODER, Split.NONE, is_linear=False)
