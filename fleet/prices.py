"""Prices of instances, each with its day and source. Sources disagree by a factor of two, so a price is an input.

A price that nobody has seen is ``None`` and stays it: a cost over an unknown price is unknown.
"""

from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated

from pydantic import Field

from fleet.value import Value


class Price(Value):
    """What one instance costs an hour under one way of buying it."""

    instance_type: str
    purchase: str = "on-demand"
    usd_per_hour: Annotated[float, Field(gt=0)]
    as_of: str
    """The month or quarter for which the source states it (``2026-05``, ``2026-Q1``)."""
    region: str | None = None
    """``None`` when the source does not say."""
    is_estimate: bool = False
    source: str


class PriceTable(Value):
    """Dated prices."""

    retrieved: str
    """The day on which the sources were read."""
    prices: tuple[Price, ...]

    @cached_property
    def _by_key(self) -> dict[tuple[str, str], Price]:
        return {(price.instance_type, price.purchase): price for price in reversed(self.prices)}

    def price(self, instance_type: str, purchase: str = "on-demand") -> Price | None:
        """The price of an instance, or ``None`` when it is not known; the first of several counts."""
        return self._by_key.get((instance_type, purchase))

    def usd_per_hour(self, instance_type: str, *, nodes: int = 1, purchase: str = "on-demand") -> float | None:
        """What some instances cost an hour, or ``None`` when the price is not known."""
        price = self.price(instance_type, purchase)
        return None if price is None else price.usd_per_hour * nodes


@cache
def bundled() -> PriceTable:
    """The prices that came with the program."""
    return PriceTable.model_validate_json(files("fleet").joinpath("data", "prices.json").read_text(encoding="utf-8"))
