"""What a class of configurations takes for a key that is not stated.

A whole configuration is written with all keys of its architecture, so a size that it does not state is one that is not
known: what the class would take is a size of one model among many. Of a section inside another (``text_config``,
``vision_config``) only what differs from the class is written, so there the class's values are meant.
"""

import json
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files

PER_LAYER = frozenset({"cross_attention_layers"})
"""Lists that a class makes for its own number of layers."""


@cache
def _all() -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    text = files("fleet.model_reading").joinpath("class_defaults.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, Mapping[str, object]]] = json.loads(text)
    return found


def class_defaults(model_type: str | None, role: str, *, layers: object = None) -> Mapping[str, object]:
    """The defaults of a class of section; ``role`` is ``text``, ``vision`` or ``audio``, ``layers`` what it states.

    Older configurations name the outer model's type in the section: ``qwen2_vl`` in a ``vision_config`` means
    ``qwen2_vl_vision``.
    """
    if not model_type:
        return {}
    named = (f"{model_type}_{role}", f"{model_type}_{role}_model", f"{model_type}_encoder", model_type)
    known = _all()["defaults"]
    found = next((known[name] for name in named if name in known), {})
    if layers in (None, found.get("num_hidden_layers")):
        return found
    return {name: value for name, value in found.items() if name not in PER_LAYER}


def demanded(model_type: str | None) -> Mapping[str, str]:
    """The figures that a configuration of this class states, under the class's own spelling.

    ``listed_layers`` is a list of the layers' kinds, where no rule of the architecture gives it.
    Without one the class takes a number of its own, which is no fact about the model at hand.
    """
    return _all()["demanded"].get(model_type or "", {})  # type: ignore[return-value]


def spelled(model_type: str | None) -> Mapping[str, str]:
    """The keys by which a class of configurations states figures, where they are not the usual names."""
    return _all()["spelled"].get(model_type or "", {})  # type: ignore[return-value]


def never_null(model_type: str | None) -> Collection[str]:
    """Figures that a class takes no null for, so that a null states nothing."""
    return _all()["never_null"].get(model_type or "", ())


def is_encoder_decoder(model_type: str | None) -> bool:
    """Whether a class takes its model for one with an encoder and a decoder where nothing is stated."""
    return model_type in _all()["encoder_decoder"]
