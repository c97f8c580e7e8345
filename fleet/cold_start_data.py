"""The constants of a cold start (``fleet/data/cold_start.json``), each with its source."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from fleet.latency_interval import Interval
from fleet.value import Value

Positive = Annotated[float, Field(gt=0)]


class Constant(Value):
    """One figure with its range."""

    low: Annotated[float, Field(ge=0)]
    mid: Annotated[float, Field(ge=0)]
    high: Annotated[float, Field(ge=0)]
    source: str

    @property
    def interval(self) -> Interval:
        """Its range."""
        return Interval(self.low, self.mid, self.high)


class WeightSource(Value):
    """A place from which replicas read weights."""

    name: str
    aggregate_gigabytes_per_second: Positive | None = None
    """Of the whole place; ``None`` = its clients are the limit, or the user sizes it."""
    client_gigabytes_per_second: Positive
    """What one node can draw."""
    is_shared: bool
    """Nodes that start together divide the aggregate; otherwise each has its own."""
    source: str

    def sized(self, capacity_tebibytes: float, megabytes_per_second_per_tebibyte: float) -> "WeightSource":
        """A Lustre file system of some capacity and throughput class: their product is its rate (AWS FSx)."""
        rate = capacity_tebibytes * megabytes_per_second_per_tebibyte / 1000
        return self.model_copy(update={"aggregate_gigabytes_per_second": rate})

    def gigabytes_per_second_of_node(self, nodes_together: int) -> float:
        """What each of some nodes draws when they start together."""
        if self.aggregate_gigabytes_per_second is None:
            return self.client_gigabytes_per_second
        divisor = nodes_together if self.is_shared else 1
        return min(self.client_gigabytes_per_second, self.aggregate_gigabytes_per_second / divisor)


class ColdStartFile(Value):
    """``cold_start.json``."""

    retrieved: str
    seconds: Mapping[str, Constant]
    gigabytes_per_second: Mapping[str, Constant]
    weight_sources: tuple[WeightSource, ...]
    image_gigabytes: Constant


@cache
def constants() -> ColdStartFile:
    """The bundled constants."""
    text = files("fleet").joinpath("data", "cold_start.json").read_text(encoding="utf-8")
    return ColdStartFile.model_validate_json(text)


def weight_source(name: str) -> WeightSource:
    """The place of a name; raises `KeyError` for one that is not in the data."""
    return {item.name: item for item in constants().weight_sources}[name]
