"""What one needs of the engines to send them requests: their metrics in any version, and who knows which field.

It is read from the engines' tables alone, without the flag lists, so that a gateway holds little of it.
"""

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

from engines.describe import metrics
from engines.tables import MetricsTable, Operations
from fleet.engine import MetricsDialect
from fleet.spec import EngineName
from fleet.value import Value


class RequestTable(Value, extra="ignore"):
    """The part of an engine's table that is about requests; the catalogue reads the whole of it."""

    metrics: tuple[MetricsTable, ...]
    cache_salt: Operations = Operations()
    text: Operations = Operations()


@lru_cache(maxsize=1)
def metrics_by_engine() -> Mapping[str, tuple[MetricsDialect, ...]]:
    """Engine -> the dialects of its own server, of all known versions; empty where it has no metrics."""
    return {
        name: tuple(metrics(row) for row in table.metrics if row.front is None and row.path is not None)
        for name, table in _tables().items()
    }


@lru_cache(maxsize=1)
def salted_operations() -> Mapping[str, frozenset[str]]:
    """Engine -> which requests can say by ``cache_salt`` whose cached prompts they may use."""
    return {name: frozenset(table.cache_salt.operations) for name, table in _tables().items()}


@lru_cache(maxsize=1)
def text_operations() -> Mapping[str, tuple[str, ...]]:
    """Engine -> the requests that its server takes for a model that writes text; empty where that is not known."""
    return {name: table.text.operations for name, table in _tables().items()}


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, RequestTable]:
    root = files("engines")
    texts = {name: root.joinpath(f"data/engines/{name}.toml").read_text(encoding="utf-8") for name in EngineName}
    return {name.value: RequestTable.model_validate(tomllib.loads(text)) for name, text in texts.items()}
