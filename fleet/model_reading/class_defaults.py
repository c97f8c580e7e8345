"""Sizes that a nested section leaves out because they equal its class's own.

A whole configuration is written with all keys of its architecture; of a section inside another (``text_config``,
``vision_config``) only what differs from the class is written, so there the class's values are meant.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def _all() -> Mapping[str, Mapping[str, object]]:
    text = files("fleet.model_reading").joinpath("class_defaults.json").read_text(encoding="utf-8")
    found: Mapping[str, Mapping[str, object]] = json.loads(text)["defaults"]
    return found


def class_defaults(model_type: str | None, role: str) -> Mapping[str, object]:
    """The defaults of a class of section; ``role`` is ``text``, ``vision`` or ``audio``.

    Older configurations name the outer model's type in the section: ``qwen2_vl`` in a ``vision_config`` means
    ``qwen2_vl_vision``.
    """
    if not model_type:
        return {}
    named = (f"{model_type}_{role}", f"{model_type}_{role}_model", f"{model_type}_encoder", model_type)
    return next((_all()[name] for name in named if name in _all()), {})
