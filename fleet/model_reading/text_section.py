"""Where the language model's keys stand in a configuration, and which architecture they belong to."""

import re

from fleet.model_reading.class_defaults import class_defaults, demanded, never_null, spelled
from fleet.model_reading.families import Family
from fleet.model_reading.family_table import FAMILIES
from fleet.model_reading.generic import generic_family
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.text import Text

MAX_LAYERS = 512
"""Published models have up to 128; more would only take time."""
WRAPPERS = ("thinker_config", "language_config", "llm_config", "text_config")
CLASS_ENDINGS = re.compile(r"(?:For[A-Z][A-Za-z]*|LMHeadModel|Model)$")
NO_TEXT_GENERATED = (
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForMaskedLM",
    "ForTextEncoding",
    "RewardModel",
)


def text_keys(outer: Keys) -> Keys:
    """The section of the language model, as deep as it is nested."""
    keys = outer
    for name in WRAPPERS:
        nested = keys.section(name)
        if nested is not None:
            keys = nested
    return keys


def typed(outer: Keys) -> Keys:
    """The configuration with its ``model_type``: where it states none, the name of its class says it."""
    if outer.has("model_type") or text_keys(outer).has("model_type"):
        return outer
    named = CLASS_ENDINGS.sub("", architecture_of(outer, outer)).lower()
    found = next((kind for kind in FAMILIES if re.sub(r"[_-]", "", kind) == named), None)
    return outer.with_values({**outer.values, "model_type": found}) if found else outer


def family_of(outer: Keys, keys: Keys) -> tuple[Family, bool]:
    """The architecture's traits, and whether they are only those of a plain transformer."""
    for section in (keys, outer):
        kind = (section.text("model_type") or "").lower()
        found = FAMILIES.get(kind) or FAMILIES.get(kind.removesuffix("_text").removesuffix("_text_model"))
        if found:
            return found, False
    return generic_family(keys), True


def with_defaults(keys: Keys, outer: Keys, family: Family) -> Keys:
    """The keys with what the architecture fixes, and, in a nested section, with its class's own values."""
    values = dict(keys.values)
    for name in family.nested:
        section = keys.section(name)
        values = {**(section.values if section else {}), **values}
    kind, depth = keys.text("model_type") or outer.text("model_type"), values.get("num_hidden_layers")
    inside = class_defaults(kind, "text", layers=depth) if keys is not outer else {}
    return Keys(
        values, keys.source, keys.path, {**inside, **family.defaults}, demanded(kind), spelled(kind), never_null(kind)
    )


def architecture_of(outer: Keys, keys: Keys) -> str:
    """The class that the configuration names, else its model type."""
    for section in (outer, keys):
        named = section.list("architectures")
        if named and isinstance(named[0], str):
            return named[0]
    return outer.text("model_type") or keys.text("model_type") or "unknown"


def is_generative(architecture: str, family: Family) -> bool:
    """Whether tokens are generated: not by encoders, embedding models, classifiers."""
    bare = architecture.endswith("Model") and not architecture.endswith(("LMHeadModel", "ChatModel", "GLMModel"))
    return not (family.is_encoder or bare or architecture.endswith(NO_TEXT_GENERATED))


def text_of(outer: Keys, keys: Keys, family: Family) -> Text:
    """The language model with the sizes that everything needs; raises `Lacking`."""
    listed = next(
        (keys.list(key) for key in ("layers_block_type", "layer_types", "block_configs") if keys.has(key)), None
    )
    is_stated = keys.values.get(keys.find("num_hidden_layers")[0]) is not None
    layers = len(listed) if listed and not is_stated else keys.need("num_hidden_layers")
    if layers > MAX_LAYERS:
        keys.refuse(keys.find("num_hidden_layers")[0], f"{layers} layers are more than any model's ({MAX_LAYERS})")
    hidden = keys.need("hidden_size")
    root = "model.language_model" if keys.path else "model"
    return Text(keys, family, root, hidden, layers, _tile_positions(outer))


def _tile_positions(outer: Keys) -> int | None:
    """Positions of all tiles of an image, which cross-attention layers look at."""
    vision = outer.section("vision_config")
    if vision is None:
        return None
    vision = Keys(vision.values, vision.source, vision.path, class_defaults(vision.text("model_type"), "vision"))
    tiles = vision.size("max_num_tiles")
    if not tiles or isinstance(vision.find("image_size")[1], list):
        return None
    try:
        return tiles * ((vision.need("image_size") // vision.need("patch_size")) ** 2 + 1)
    except Lacking:
        return None
