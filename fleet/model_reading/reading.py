"""The reading of a whole configuration."""

from collections.abc import Iterator, Mapping

from fleet.model import Missing, Model, UnknownAttention
from fleet.model_reading.class_defaults import is_encoder_decoder
from fleet.model_reading.encoder_decoder import encoder_decoder
from fleet.model_reading.families import Family
from fleet.model_reading.family_table import FAMILIES
from fleet.model_reading.feed_forward import experts_of
from fleet.model_reading.generic import check_generic, check_wrapper
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.layers import Stack, stack
from fleet.model_reading.mistral_params import as_usual
from fleet.model_reading.mtp import mtp_tensors
from fleet.model_reading.stored import Unreadable, stored_format
from fleet.model_reading.text import Text
from fleet.model_reading.text_section import (
    architecture_of,
    family_of,
    is_generative,
    text_keys,
    text_of,
    typed,
    with_defaults,
)
from fleet.model_reading.towers import SECTIONS, modalities_of, tower_tensors, unstated_towers
from fleet.model_reading.vocabulary import vocabulary
from fleet.quantization import StoredFormat
from fleet.tensors import Tensor

READ = frozenset(
    {
        *("text_config", "vision_config", "audio_config", "llm_config", "language_config", "thinker_config"),
        *("quantization_config", "_hf_quant_config", "linear_attn_config", "attn_config", "ffn_config"),
        *("talker_config", "token2wav_config", "code2wav_config", "per_layer_config", "generation_config"),
        *("compression_config", "rope_config", "tokenizer_config", "processor_config", "adapter_config"),
    }
)
"""Sections that are read, and those without weights that are loaded to generate text."""
FIGURES = ("weights", "kv")
UNREAD = frozenset({"embd_layer", "audio_processor", "vision_lora", "mm_vision_tower"})
"""Keys of parts that older remote code describes elsewhere."""


def read_model(config: Mapping[str, object], *, id: str) -> Model:  # noqa: A002 - the word of the contract
    """The model that a ``config.json`` describes.

    What the configuration does not say stands in `Model.missing` with its key. Raises `ConfigError` where a value
    can't be right.
    """
    outer = typed(Keys(as_usual(config, id), id))
    if outer.flag("is_encoder_decoder", default=is_encoder_decoder(outer.text("model_type"))):
        return encoder_decoder(outer, id)
    inner = text_keys(outer)
    family, is_generic = family_of(outer, inner)
    keys = with_defaults(inner, outer, family)
    architecture = architecture_of(outer, inner)
    missing = list(_untyped(outer, keys)) if is_generic else []
    text = _text(outer, keys, family, missing)
    layers = stack(text) if text else Stack((), None, 0, None)
    missing.extend(_lacking_of_layers(layers))
    missing.extend(_unread(outer, keys, is_generic=is_generic))
    return Model(
        id=id,
        architecture=architecture,
        hidden_size=text.hidden if text else 0,
        vocabulary=keys.size("vocab_size") or 0,
        max_context_tokens=keys.size("max_position_embeddings"),
        layers=layers.layers,
        tensors=_outside(outer, text, layers, architecture, missing) if text else (),
        experts=experts_of(layers.mixture, layers.sparse_layers),
        stored=_stored(outer, keys, missing),
        modalities=modalities_of(outer),
        is_generic=is_generic,
        is_generative=is_generative(architecture, family),
        missing=tuple(missing),
    )


def _text(outer: Keys, keys: Keys, family: Family, missing: list[Missing]) -> Text | None:
    try:
        return text_of(outer, keys, family)
    except Lacking as lack:
        missing.extend(_missing(figure, lack) for figure in FIGURES)
        return None


def _outside(outer: Keys, text: Text, layers: Stack, architecture: str, missing: list[Missing]) -> tuple[Tensor, ...]:
    """Everything that stands in no layer."""
    found: list[Tensor] = []
    parts: tuple[Iterator[Tensor], ...] = (
        vocabulary(text, outer, has_head=is_generative(architecture, text.family)),
        mtp_tensors(text, layers.mixture),
        tower_tensors(outer, text.hidden),
    )
    for part in parts:
        try:
            found.extend(part)
        except Lacking as lack:
            missing.append(_missing("weights", lack))
    missing.extend(unstated_towers(outer, architecture))
    return tuple(found)


def _untyped(outer: Keys, keys: Keys) -> Iterator[Missing]:
    """Nothing is known of an architecture that has no name at all."""
    if not (outer.has("model_type") or keys.has("model_type")):
        yield from (Missing(figure, "model_type", "the configuration does not state model_type") for figure in FIGURES)


def _unread(outer: Keys, keys: Keys, *, is_generic: bool) -> Iterator[Missing]:
    """Sections and architectures whose weights are not known."""
    towers = (outer.section(name) for name in SECTIONS)
    for section in (outer, *((keys,) if keys.path else ()), *(tower for tower in towers if tower)):
        for name, value in section.values.items():
            if name in UNREAD or (name.endswith("_config") and name not in READ and isinstance(value, Mapping)):
                message = f"the part of the model that {section.path}{name} describes is not read"
                yield Missing("weights", f"{section.path}{name}", message)
    try:
        if is_generic:
            check_generic(outer, keys)
        elif (outer.text("model_type") or "").lower() not in FAMILIES:
            check_wrapper(outer)
    except Lacking as lack:
        yield _missing("weights", lack)


def _stored(outer: Keys, keys: Keys, missing: list[Missing]) -> StoredFormat | None:
    try:
        return stored_format(outer, keys)
    except Unreadable as unreadable:
        message = f"the quantisation method {unreadable.value!r} is not known"
        missing.append(Missing("stored", unreadable.key, message))
    except Lacking as lack:
        missing.append(_missing("stored", lack))
    return None


def _lacking_of_layers(layers: Stack) -> Iterator[Missing]:
    unknown = [kind for layer in layers.layers for kind in layer.attention if isinstance(kind, UnknownAttention)]
    if layers.lacking:
        yield _missing("weights", layers.lacking)
    if unknown:
        yield Missing("kv", unknown[0].key, unknown[0].reason)


def _missing(figure: str, lack: Lacking) -> Missing:
    return Missing(figure, lack.key, lack.message)
