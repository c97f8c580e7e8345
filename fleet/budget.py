"""How much may be used, what tokens weigh and what they cost; every amount is a whole number, so none gets lost."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from fleet.value import Value

PICODOLLARS_PER_USD = 10**12
_WEIGHT_PARTS = 1000
_PRICE_PARTS = 10**6
"""Picodollars a token for each dollar a million tokens."""

Limit = Annotated[int, Field(ge=0)]
Usd = Annotated[float, Field(ge=0, le=1e9)]
InputWeight = Annotated[float, Field(ge=0, le=1000)]
OutputWeight = Annotated[float, Field(ge=1 / _WEIGHT_PARTS, le=1000)]
"""Never nothing: output is what keeps an engine busy, so it can't be free."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """What one token of each kind counts for, in parts of the unit that a budget is counted in."""

    input_token: int
    cached_input_token: int
    output_token: int
    parts: int
    """Of one unit; sums are rounded up to whole units."""

    def charge(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> int:
        """What an answer counts for; ``cached_tokens`` are among ``input_tokens``."""
        fresh_tokens = input_tokens - cached_tokens
        whole = fresh_tokens * self.input_token + cached_tokens * self.cached_input_token
        whole += output_tokens * self.output_token
        return -(-whole // self.parts)

    def at_most(self, input_tokens: int, output_tokens: int) -> int:
        """What an answer can count for, however much of its input is found in a cache."""
        whole = input_tokens * max(self.input_token, self.cached_input_token) + output_tokens * self.output_token
        return -(-whole // self.parts)

    def output_within(self, amount: int, input_tokens: int) -> int | None:
        """The longest output that `at_most` this amount pays for, below 0 if the input alone is too much.

        ``None`` = any: output counts for nothing.
        """
        if not self.output_token:
            return None
        left = amount * self.parts - input_tokens * max(self.input_token, self.cached_input_token)
        return left // self.output_token


class TokenWeights(Value):
    """What a token counts for in a budget of tokens; thousandths are kept."""

    input_token: InputWeight = 1.0
    cached_input_token: InputWeight = 0.1
    output_token: OutputWeight = 1.0

    def tariff(self) -> Tariff:
        """In tokens."""
        return _tariff(_WEIGHT_PARTS, self.input_token, self.cached_input_token, self.output_token, parts=_WEIGHT_PARTS)


class ModelPrice(Value):
    """What a public model costs a tenant; prices are kept to a millionth of a dollar a million tokens."""

    model: str
    usd_per_million_input_tokens: Usd
    usd_per_million_cached_input_tokens: Usd | None = None
    """``None`` = as any input."""
    usd_per_million_output_tokens: Usd

    def tariff(self) -> Tariff:
        """In picodollars."""
        stated = self.usd_per_million_cached_input_tokens
        cached = self.usd_per_million_input_tokens if stated is None else stated
        output = self.usd_per_million_output_tokens
        return _tariff(_PRICE_PARTS, self.usd_per_million_input_tokens, cached, output, parts=1)


def _tariff(scale: int, fresh: float, cached: float, output: float, *, parts: int) -> Tariff:
    return Tariff(round(fresh * scale), round(cached * scale), round(output * scale), parts)


class Limits(Value):
    """What may be used; ``None`` = no limit."""

    tokens_per_minute: Limit | None = None
    tokens_per_day: Limit | None = None
    """Of a calendar day in UTC."""
    requests_per_minute: Limit | None = None
    concurrent_requests: Limit | None = None
    usd_per_month: Usd | None = None
    """Of a calendar month in UTC; a model without a price can't be used within it."""


class ModelLimits(Limits):
    """What a tenant may use of one model, within what it may use at all."""

    model: str
    weights: TokenWeights | None = None
    """``None`` = those of the tenant."""
