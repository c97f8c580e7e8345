"""Sizes that single layers have of their own (``per_layer_config``)."""

from collections.abc import Mapping
from dataclasses import replace

from fleet.model_reading.generic import SIZE
from fleet.model_reading.keys import Keys, Lacking
from fleet.model_reading.text import Text

KEY = "per_layer_config"
READ = frozenset({"head_dim", "num_attention_heads", "num_key_value_heads", "v_head_dim"}) | {
    *("intermediate_size", "sliding_window"),
}
"""What is read of it; of anything else that sizes a layer, nothing is known."""


def has_overrides(keys: Keys) -> bool:
    """Whether layers have sizes of their own, in place of those that hold for a kind of layer."""
    return isinstance(keys.find(KEY)[1], Mapping)


def of_layer(text: Text, layer: int) -> Text:
    """The language model with the sizes of one layer; raises `Lacking` for one that is not read."""
    own = _entry(text.keys, layer) if has_overrides(text.keys) else None
    if own is None:
        return text
    for name in own.values:
        if name not in READ and SIZE.search(name):
            raise Lacking(f"{own.path}{name}", f"what a layer makes of its own {name} is not read")
    stated = {name: value for name, value in own.values.items() if name in READ}
    return replace(text, keys=text.keys.with_values({**text.keys.values, **stated}))


def _entry(keys: Keys, layer: int) -> Keys | None:
    """A layer's entry; its number may be padded with zeros."""
    section = keys.section(KEY)
    number = (
        next((name for name in section.values if name.isdecimal() and int(name) == layer), None) if section else None
    )
    return section.section(number) if section and number is not None else None
