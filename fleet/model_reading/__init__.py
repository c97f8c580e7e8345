"""A configuration becomes a `fleet.model.Model`: by the architecture's name and the keys, never by a model's name."""

from fleet.model_reading.reading import read_model

__all__ = ["read_model"]
