"""The reading of a whole configuration."""

from collections.abc import Mapping

from fleet.model import Missing, Model, UnknownAttention
from fleet.model_reading.families import Family
from fleet.model_reading.family_table import FAMILIES
from fleet.model_reading.feed_forward import experts_of
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.layers import Stack, stack
from fleet.model_reading.mtp import mtp_tensors
from fleet.model_reading.stored import Unreadable, stored_format
from fleet.model_reading.text import Text
from fleet.model_reading.towers import tower_tensors
from fleet.model_reading.vocabulary import vocabulary
from fleet.quantization import StoredFormat
from fleet.tensors import Tensor

MAX_LAYERS = 4096
NESTED = ("text_config", "llm_config", "language_config")


def read_model(config: Mapping[str, object], *, id: str) -> Model:  # noqa: A002 - the word of the contract
    """The model that a ``config.json`` describes.

    What the configuration does not say stands in `Model.missing` with its key. Raises `ConfigError` where a value
    can't be right.
    """
    outer = Keys(config, id)
    keys = _text_keys(outer)
    family, is_generic = family_of(outer, keys)
    keys = Keys(keys.values, id, keys.path, family.defaults)
    missing: list[Missing] = []
    text = _text(outer, keys, family, missing)
    layers = stack(text) if text else Stack((), None, 0, None)
    if layers.lacking:
        missing.append(_missing("weights", layers.lacking))
    stored = _stored(outer, keys, missing)
    missing.extend(_kv_missing(layers))
    return Model(
        id=id,
        architecture=architecture_of(outer, keys),
        hidden_size=text.hidden if text else 0,
        vocabulary=keys.size("vocab_size") or 0,
        max_context_tokens=keys.size("max_position_embeddings"),
        layers=layers.layers,
        tensors=_outside(outer, text, layers, missing) if text else (),
        experts=experts_of(layers.mixture, layers.sparse_layers),
        stored=stored,
        modalities=_modalities(outer),
        is_generic=is_generic,
        missing=tuple(missing),
    )


def _text_keys(outer: Keys) -> Keys:
    for name in NESTED:
        nested = outer.section(name)
        if nested and nested.values:
            return nested
    return outer


def family_of(outer: Keys, keys: Keys) -> tuple[Family, bool]:
    """The architecture's traits, and whether they are only those of a plain transformer."""
    for section in (keys, outer):
        kind = (section.text("model_type") or "").removesuffix("_text")
        if kind in FAMILIES:
            return FAMILIES[kind], False
    return Family(), True


def architecture_of(outer: Keys, keys: Keys) -> str:
    """The class that the configuration names, else its model type."""
    for section in (outer, keys):
        named = section.list("architectures")
        if named and isinstance(named[0], str):
            return named[0]
    return outer.text("model_type") or keys.text("model_type") or "unknown"


def _text(outer: Keys, keys: Keys, family: Family, missing: list[Missing]) -> Text | None:
    try:
        listed = next((keys.list(key) for key in ("layers_block_type", "layer_types") if keys.has(key)), None)
        layers = keys.size("num_hidden_layers") or (len(listed) if listed else keys.need("num_hidden_layers"))
        if layers > MAX_LAYERS:
            keys.refuse(keys.find("num_hidden_layers")[0], f"{layers} layers are more than any model's ({MAX_LAYERS})")
        root = "model" if keys is outer or not keys.path else "model.language_model"
        return Text(keys, family, root, keys.need("hidden_size"), layers)
    except Lacking as lack:
        missing.extend(_missing(figure, lack) for figure in ("weights", "kv"))
        return None


def _outside(outer: Keys, text: Text, layers: Stack, missing: list[Missing]) -> tuple[Tensor, ...]:
    found: list[Tensor] = []
    for part in (
        vocabulary(text, outer),
        mtp_tensors(text, layers.mixture),
        tower_tensors(outer, text.hidden),
    ):
        try:
            found.extend(part)
        except Lacking as lack:
            missing.append(_missing("weights", lack))
    return tuple(found)


def _stored(outer: Keys, keys: Keys, missing: list[Missing]) -> StoredFormat | None:
    try:
        return stored_format(outer, keys)
    except Unreadable as unreadable:
        missing.append(Missing("weights", unreadable.key, f"the quantisation method {unreadable.value!r} is not known"))
    except Lacking as lack:
        missing.append(_missing("weights", lack))
    return None


def _kv_missing(layers: Stack) -> list[Missing]:
    unknown = [kind for layer in layers.layers for kind in layer.attention if isinstance(kind, UnknownAttention)]
    return [Missing("kv", layers.lacking.key if layers.lacking else "", unknown[0].reason)] if unknown else []


def _missing(figure: str, lack: Lacking) -> Missing:
    return Missing(figure, lack.key, lack.message)


def _modalities(outer: Keys) -> frozenset[str]:
    found = {"text"}
    found |= {"image"} if outer.has("vision_config") else set()
    found |= {"audio"} if outer.has("audio_config") else set()
    return frozenset(found)
