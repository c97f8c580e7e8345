"""What the answers of one session hold in budgets: each for itself, as if it were a request. No I/O, no clock."""

from collections.abc import Callable
from dataclasses import dataclass

from fleet.snapshot import GatewayTenant
from gateway.budgets import Budgets
from gateway.exhausted import Exhausted
from gateway.legs import Leg
from gateway.passage import End, Ending
from gateway.reservations import Reservation, Settled
from gateway.stopwatch import Times
from gateway.token_estimate import TokenEstimate
from gateway.token_usage import TokenUsage

_MOST_OUTPUT_TOKENS = 131_072
"""Of one answer, where the route does not say how long its model can write."""
Answered = Callable[[Settled | None, Ending, Times], None]
"""Told of each answer that is over."""


@dataclass(slots=True)
class HeldAnswer:
    """One answer on its way."""

    held: Reservation
    began: float
    events: int = 0
    """Events with output that the client was sent."""
    first: float | None = None

    def heard(self, now: float) -> None:
        """A piece of it came."""
        self.events += 1
        self.first = self.first if self.first is not None else now


class SessionBudget:
    """The budgets of a session's tenant and model, without a place of its own for each answer."""

    def __init__(
        self, budgets: Budgets, leg: Leg, tenant: GatewayTenant, clock: Callable[[], float], answered: Answered
    ) -> None:
        self._budgets = budgets
        self._leg = leg
        self._tenant = tenant
        self._clock = clock
        self._answered = answered

    def hold(self, input_tokens: int, stated_output_tokens: int | None) -> HeldAnswer | Exhausted:
        """What an answer may come to, from now until it ends."""
        now = self._clock()
        size = TokenEstimate(input_tokens, 1, stated_output_tokens)
        most = self._leg.route.max_output_tokens or _MOST_OUTPUT_TOKENS
        demand = size.demand(most, self._tenant.default_output_tokens)
        held = self._budgets.reserve(self._tenant.name, self._leg.model, demand, now, is_within=True)
        return held if isinstance(held, Exhausted) else HeldAnswer(held, now)

    def heard(self, answer: HeldAnswer) -> None:
        """A piece of an answer came: it still runs."""
        now = self._clock()
        answer.heard(now)
        self._budgets.renew(answer.held.number, now)

    def never_began(self, answer: HeldAnswer) -> None:
        """The engine did not take it on."""
        self._budgets.cancel(answer.held.number, self._clock())

    def end(self, answer: HeldAnswer, end: End, usage: TokenUsage | None) -> None:
        """It is over, with the engine's figures where it gave them."""
        now, number = self._clock(), answer.held.number
        if usage is None:
            settled = self._budgets.settle_counted(number, answer.events, now)
        else:
            settled = self._budgets.settle(number, usage, now)
        first = None if answer.first is None else answer.first - answer.began
        times = Times(max(0.0, now - answer.began), first)
        self._answered(settled, Ending(end, 200, usage, answer.events), times)
