"""The answer to a request that a budget has no room for: which budget, when it has, and what to change."""

import math
from dataclasses import dataclass

from fleet.budget import PICODOLLARS_PER_USD
from gateway.accounts import ClosedAccount
from gateway.budget_lines import BudgetLine, Unit
from gateway.rate_limit_headers import Header
from gateway.refusals import Reason, Refused, quoted, refuse

_RATE_LIMIT = "rate_limit_exceeded"
_QUOTA = "insufficient_quota"


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A request that was not admitted; nothing was held for it."""

    unit: Unit
    model: str | None
    """``None`` = the budget holds for all that the tenant does."""
    limit: int
    asked: int
    """What the request may come to, in the unit of the limit (picodollars for money)."""
    wait_seconds: float
    """Until there is room, if nobody else takes it; infinite = never, as long as the limit is this."""
    is_unpriced: bool
    rate_limits: tuple[Header, ...]

    @property
    def code(self) -> str:
        """OpenAI's word: clients try again after the first, and ask for more money after the second."""
        return _QUOTA if self.unit is Unit.USD_PER_MONTH else _RATE_LIMIT

    @property
    def headers(self) -> tuple[Header, ...]:
        """How long to wait, where waiting helps, and how the limits stand."""
        if math.isinf(self.wait_seconds):
            return self.rate_limits
        return (("retry-after", str(max(1, math.ceil(self.wait_seconds)))), *self.rate_limits)

    @property
    def message(self) -> str:
        """For the client; it names nothing of the request but its model."""
        scope = "" if self.model is None else f" for the model {quoted(self.model)}"
        limit = f"{self._shown(self.limit)} {self.unit}{scope}"
        if self.is_unpriced:
            return f"The limit is {limit}, and no price is stated for this model; ask the operator to state one."
        if math.isinf(self.wait_seconds):
            return f"{self._asks()} than the limit of {limit} ever allows. {self._remedy()}"
        wait = max(1, math.ceil(self.wait_seconds))
        return f"The limit of {limit} has no room left for this request{self._asked()}. Try again in {wait} s."

    def refused(self, tenant: str, model: str) -> Refused:
        """The answer."""
        return refuse(Reason(self.code), self.message, headers=self.headers, tenant=tenant, model=model)

    def _asks(self) -> str:
        counts_tokens = self.unit in (Unit.TOKENS_PER_MINUTE, Unit.TOKENS_PER_DAY, Unit.USD_PER_MONTH)
        return f"This request may use more ({self._shown(self.asked)})" if counts_tokens else "This request is more"

    def _asked(self) -> str:
        counts_requests = self.unit in (Unit.REQUESTS_PER_MINUTE, Unit.CONCURRENT_REQUESTS)
        return "" if counts_requests else f", which may use {self._shown(self.asked)}"

    def _remedy(self) -> str:
        if not self.limit:
            return "This tenant may send none."
        return "Send a shorter prompt, or ask for fewer tokens with 'max_tokens'."

    def _shown(self, amount: int) -> str:
        return f"{amount / PICODOLLARS_PER_USD:.4f}" if self.unit is Unit.USD_PER_MONTH else str(amount)


def exhausted(line: BudgetLine, asked: int, wait_seconds: float, rate_limits: tuple[Header, ...]) -> Exhausted:
    """A line without room for a request."""
    is_unpriced = isinstance(line.account, ClosedAccount)
    return Exhausted(line.unit, line.model, line.account.limit, asked, wait_seconds, is_unpriced, rate_limits)
