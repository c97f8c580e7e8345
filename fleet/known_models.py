"""Models whose configuration is at hand: the environment's own, else the catalogue's."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fleet import model_catalogue
from fleet.facts import Facts
from fleet.model import Model
from fleet.model_config import ConfigError
from fleet.model_reading import read_model


@dataclass(frozen=True, slots=True)
class Known:
    """A model whose configuration is at hand."""

    model: Model
    quantization: str | None


def known_model(model_id: str, facts: Facts) -> Known | None:
    """The model by the environment's own configurations, else by the catalogue; ``None`` when nobody knows it."""
    own = facts.model_configs.get(model_id)
    if own is not None:
        return facts.remember(("model", model_id), lambda: _read(own, model_id))
    return _bundled(model_id)


@lru_cache(maxsize=256)
def _bundled(model_id: str) -> Known | None:
    found = model_catalogue.find(model_id)
    return None if found is None else _read(found.config, model_id, found.quantization)


def _read(config: Mapping[str, Any], model_id: str, quantization: str | None = None) -> Known | None:
    try:
        return Known(read_model(config, id=model_id), quantization)
    except ConfigError:
        return None
