"""Budgets of tenants and of their models: held before a request goes out, charged by what it came to. No I/O, no clock.

Why no answer is free: a request holds the most that it can come to (the estimate of its input, and the longest output
that it asks for or that the budgets ever hold). It is charged the engine's figures; or what was counted, where the
client left or the figures are missing; or, where its end never comes, the whole hold once it has not been heard of for
`lifetime_seconds`. A tenant that gained by a lost end would have a reason to lose it.
"""

from collections.abc import Iterable, Mapping

from fleet.budget import ModelPrice
from fleet.snapshot import GatewayTenant
from gateway.budget_lines import BudgetLine, BudgetLines, NewAccount, Unit, account_of_unit
from gateway.budget_state import KeptAccount, kept_accounts, restore_accounts
from gateway.exhausted import Exhausted, exhausted
from gateway.rate_limit_headers import Header, rate_limit_headers
from gateway.reservations import Basis, Demand, Reservation, Reservations, Settled
from gateway.token_usage import TokenUsage

LIFETIME_SECONDS = 900.0
"""Longer than engines let anything run silently; a stream that is heard of lives on."""


_OPEN_OUTPUTS = 4
"""So many requests that leave their output open fit into a budget at once. With one alone, it would have to wait until
nothing else is held or charged, and where there is always something, for ever."""


class Budgets:
    """The accounts of every tenant, and the requests that hold something in them."""

    def __init__(self, lifetime_seconds: float = LIFETIME_SECONDS, new_account: NewAccount = account_of_unit) -> None:
        self._lines = BudgetLines(new_account)
        self._reservations = Reservations(lifetime_seconds)

    def __len__(self) -> int:
        """Requests on their way."""
        return len(self._reservations)

    def replace(self, tenants: Mapping[str, GatewayTenant], prices: Iterable[ModelPrice], now: float) -> None:
        """Other limits and prices from now on; what was held and charged stays."""
        self._lines.replace(tenants, prices, now)

    def reserve(
        self, tenant: str, model: str, demand: Demand, now: float, *, is_within: bool = False
    ) -> Reservation | Exhausted:
        """Hold what a request may come to in every budget, or in none; raises `KeyError` for an unknown tenant.

        ``is_within`` = it is part of one that is counted among the requests at once already.
        """
        lines = self._lines.of(tenant, model, now)
        if is_within:
            lines = tuple(line for line in lines if line.unit is not Unit.CONCURRENT_REQUESTS)
        input_tokens, output_tokens, is_stated = demand
        if not is_stated:
            output_tokens = _within_limits(lines, demand)
        amounts: list[int] = []
        longest, short = 0.0, -1
        for place, (_, _, account, tariff) in enumerate(lines):
            amount = 1 if tariff is None else tariff.at_most(input_tokens, output_tokens)
            amounts.append(amount)
            wait = account.wait(amount, now)
            if wait > longest:
                longest, short = wait, place
        if longest > 0:
            return exhausted(lines[short], amounts[short], longest, rate_limit_headers(lines, now))
        number = self._reservations.next_number()
        for line, amount in zip(lines, amounts, strict=True):
            line.account.hold(number, amount, now)
        expires_at = self._reservations.expiry(now)
        held = Reservation(number, tenant, model, input_tokens, output_tokens, lines, tuple(amounts), expires_at)
        self._reservations.add(held)
        return held

    def renew(self, number: int, now: float) -> bool:
        """The request is still running; ``False`` = it is over for us."""
        return self._reservations.renew(number, now)

    def settle(self, number: int, usage: TokenUsage, now: float) -> Settled | None:
        """Charge what the engine says; ``None`` = the request was over already, and nothing changed.

        Figures that are all 0 are none: then it counts as a request of which nothing was sent on.
        """
        if not usage.input_tokens and not usage.output_tokens:
            return self.settle_counted(number, 0, now)
        reservation = self._reservations.end(number)
        return None if reservation is None else _charged(reservation, usage, Basis.USAGE, now)

    def settle_counted(self, number: int, output_tokens: int, now: float) -> Settled | None:
        """Charge the estimated input and the output that was counted, at least one token where output was held."""
        reservation = self._reservations.end(number)
        if reservation is None:
            return None
        counted = max(output_tokens, min(1, reservation.output_tokens))
        return _charged(reservation, TokenUsage(reservation.input_tokens, 0, counted), Basis.COUNTED, now)

    def settle_reserved(self, number: int, now: float) -> Settled | None:
        """Charge all that was held: the answer came, and nobody could count it."""
        reservation = self._reservations.end(number)
        return None if reservation is None else _charged_whole(reservation, now)

    def fail(self, number: int, now: float) -> Settled | None:
        """The engine answered with an error: the request counts, its tokens don't."""
        reservation = self._reservations.end(number)
        return None if reservation is None else _charged(reservation, _NOTHING, Basis.FAILED, now)

    def cancel(self, number: int, now: float) -> Settled | None:
        """No engine got the request: it is as if it had never come."""
        reservation = self._reservations.end(number)
        if reservation is None:
            return None
        reservation.release(now)
        return _settled(reservation, _NOTHING, Basis.CANCELLED)

    def expire(self, now: float) -> tuple[Settled, ...]:
        """Charge the whole hold of each request that was not heard of for too long."""
        return tuple(_charged_whole(reservation, now) for reservation in self._reservations.expired(now))

    def lines(self, tenant: str, model: str, now: float) -> tuple[BudgetLine, ...]:
        """The budgets that a request counts in; raises `KeyError` for an unknown tenant."""
        return self._lines.of(tenant, model, now)

    def headers(self, tenant: str, model: str, now: float) -> tuple[Header, ...]:
        """How the limits of a tenant and model stand, for its answers; raises `KeyError` for an unknown tenant."""
        return rate_limit_headers(self._lines.of(tenant, model, now), now)

    def kept(self, now: float) -> tuple[KeptAccount, ...]:
        """What should outlive a restart."""
        return tuple(kept_accounts(self._lines, now))

    def restore(self, kept: Iterable[KeptAccount], now: float) -> None:
        """Go on from what was kept, after the first `replace`."""
        restore_accounts(self._lines, kept, now)


_NOTHING = TokenUsage(0, 0, 0)


def _within_limits(lines: Iterable[BudgetLine], demand: Demand) -> int:
    """An output that nobody asked for is cut to a part of what each budget has for output when it is whole."""
    output_tokens = demand.output_tokens
    for line in lines:
        if line.tariff is not None:
            most = line.tariff.output_within(line.account.limit, demand.input_tokens)
            output_tokens = output_tokens if most is None else min(output_tokens, max(1, most // _OPEN_OUTPUTS))
    return output_tokens


def _charged(reservation: Reservation, usage: TokenUsage, basis: Basis, now: float) -> Settled:
    reservation.settle(usage, now)
    return _settled(reservation, usage, basis)


def _charged_whole(reservation: Reservation, now: float) -> Settled:
    reservation.settle_whole(now)
    whole = TokenUsage(reservation.input_tokens, 0, reservation.output_tokens)
    return _settled(reservation, whole, Basis.RESERVED)


def _settled(reservation: Reservation, usage: TokenUsage, basis: Basis) -> Settled:
    return Settled(reservation.number, reservation.tenant, reservation.model, usage, basis)
