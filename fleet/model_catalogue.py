"""The models that the program knows: configurations by id, and ids that share another one's shape.

The configurations stand in ``fleet/data/models/`` with their sources; ``fleet/data/model_aliases.json`` names models of
the same shape and the precision of their checkpoint.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from fleet.value import Value


class Alias(Value):
    """A model with the shape of another one."""

    shape_of: str
    quantization: str | None = None
    """The precision of its checkpoint where it differs from that of ``shape_of``."""


class AliasFile(Value):
    """``model_aliases.json``."""

    source: str
    aliases: dict[str, Alias]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model of the catalogue."""

    id: str
    config: Mapping[str, Any]
    """As its ``config.json`` has it, architecture keys only."""
    quantization: str | None = None
    """The checkpoint's precision, where it is not the one that the configuration states."""
    shape_of: str | None = None
    """The model whose configuration stands for it."""


@cache
def known_ids() -> tuple[str, ...]:
    """Every id that the catalogue knows."""
    folder = files("fleet").joinpath("data", "models")
    own = (_id(item.name) for item in folder.iterdir() if item.name.endswith(".json"))
    return tuple(sorted({*own, *_aliases()}))


def find(model_id: str) -> KnownModel | None:
    """The model of an id; a prefix like ``hf:`` or a revision is not part of it. ``None`` when it is not known."""
    alias = _aliases().get(model_id)
    if alias is not None:
        return KnownModel(model_id, _config(alias.shape_of), alias.quantization, alias.shape_of)
    return KnownModel(model_id, _config(model_id)) if model_id in known_ids() else None


@cache
def _aliases() -> Mapping[str, Alias]:
    text = files("fleet").joinpath("data", "model_aliases.json").read_text(encoding="utf-8")
    return AliasFile.model_validate_json(text).aliases


@cache
def _config(model_id: str) -> Mapping[str, Any]:
    name = f"{model_id.replace('/', '--', 1)}.json"
    found: Mapping[str, Any] = json.loads(files("fleet").joinpath("data", "models", name).read_text(encoding="utf-8"))
    return found


def _id(file_name: str) -> str:
    return file_name.removesuffix(".json").replace("--", "/", 1)
