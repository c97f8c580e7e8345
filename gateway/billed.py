"""Who pays for a request, and by which price: what is known when it is admitted."""

from typing import NamedTuple

from fleet.budget import Tariff
from gateway.token_usage import TokenUsage


class Billed(NamedTuple):
    """The payer of one request."""

    key: str
    """The id of the key, never the key."""
    admitted_unix_seconds: float
    price: Tariff | None
    """``None`` = the model has none."""

    def cost_picodollars(self, usage: TokenUsage) -> int | None:
        """What tokens cost; ``None`` = nobody knows."""
        if self.price is None:
            return None
        return self.price.charge(usage.input_tokens, usage.cached_tokens, usage.output_tokens)
