"""Prices of instances, each with its day and source. Sources disagree by a factor of two, so a price is an input.

A price that nobody has seen is ``None`` and stays it: a cost over an unknown price is unknown.
"""

from datetime import date
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Self

from pydantic import Field, StringConstraints, field_validator

from fleet.value import Value

PERIOD_PATTERN = r"^\d{4}(-(Q[1-4]|(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?))?$"
Period = Annotated[str, StringConstraints(pattern=PERIOD_PATTERN)]
"""A year, quarter, month or day."""


class Price(Value):
    """What one instance costs an hour under one way of buying it."""

    instance_type: str
    purchase: str = "on-demand"
    usd_per_hour: Annotated[float, Field(gt=0)]
    as_of: Period
    """The day, month or quarter for which the source states it (``2026-05``, ``2026-Q1``)."""
    region: str | None = None
    """``None`` when the source does not say."""
    is_estimate: bool = False
    source: Annotated[str, Field(min_length=1)]

    @field_validator("as_of", mode="before")
    @classmethod
    def _day(cls, value: object) -> object:
        """YAML reads a bare day as a date."""
        return value.isoformat() if type(value) is date else value

    @property
    def since(self) -> str:
        """The start of its period, so that days, months, quarters and years can be ordered."""
        year, _, part = self.as_of.partition("-")
        return f"{year}-{3 * int(part[1]) - 2:02}" if part.startswith("Q") else self.as_of


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

    def why_unknown(self, instance_type: str, purchase: str = "on-demand") -> str:
        """Why there is no price, and for what there is one: a sentence for people."""
        others = sorted({price.purchase for price in self.prices if price.instance_type == instance_type})
        known = f"; known for it: {', '.join(others)}" if others else ""
        return f"no {purchase} price of {instance_type} is known (table of {self.retrieved}){known}"

    def with_prices(self, own: Self) -> Self:
        """This table with a user's own prices before it: where both have a price, the user's counts."""
        return type(self)(retrieved=own.retrieved, prices=(*own.prices, *self.prices))


def with_own(own: tuple[Price, ...]) -> PriceTable | None:
    """The bundled table with prices of one's own before it; ``None`` = the bundled one as it is."""
    return bundled().with_prices(PriceTable(retrieved=bundled().retrieved, prices=own)) if own else None


@cache
def bundled() -> PriceTable:
    """The prices that came with the program."""
    return PriceTable.model_validate_json(files("fleet").joinpath("data", "prices.json").read_text(encoding="utf-8"))
