"""Which budgets a request counts in: those of its tenant, and those that the tenant has for its model."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from fleet.budget import PICODOLLARS_PER_USD, Limits, ModelPrice, Tariff
from fleet.snapshot import GatewayTenant
from gateway.accounts import Account, ClosedAccount, ConcurrencyAccount
from gateway.calendar_account import CalendarAccount, Period
from gateway.token_bucket import TokenBucket


class Unit(StrEnum):
    """What a budget counts, in the words of a message; the value is a metric's label."""

    REQUESTS_PER_MINUTE = "requests per minute"
    CONCURRENT_REQUESTS = "requests at once"
    TOKENS_PER_MINUTE = "tokens per minute"
    TOKENS_PER_DAY = "tokens per day"
    USD_PER_MONTH = "USD per month"


TOKENS = frozenset({Unit.TOKENS_PER_MINUTE, Unit.TOKENS_PER_DAY})


class BudgetLine(NamedTuple):
    """One budget that a request counts in."""

    unit: Unit
    model: str | None
    """``None`` = it holds for all that the tenant does."""
    account: Account
    tariff: Tariff | None
    """``None`` = it counts requests."""


Key = tuple[str, str | None, Unit]
Kept = Mapping[Key, Account]


NewAccount = Callable[[Key, int, float], Account]
"""Makes an account for a limit."""


def account_of_unit(key: Key, limit: int, now: float) -> Account:
    """One that this process keeps alone."""
    unit = key[2]
    if unit is Unit.CONCURRENT_REQUESTS:
        return ConcurrencyAccount(limit)
    if unit is Unit.TOKENS_PER_DAY:
        return CalendarAccount(limit, Period.DAY, now)
    if unit is Unit.USD_PER_MONTH:
        return CalendarAccount(limit, Period.MONTH, now)
    return TokenBucket(limit, now)


class BudgetLines:
    """The accounts of all tenants, and the lines of each tenant and model, made when they are first asked for."""

    def __init__(self, new_account: NewAccount = account_of_unit) -> None:
        self._new_account = new_account
        self._tenants: Mapping[str, GatewayTenant] = {}
        self._prices: Mapping[str, Tariff] = {}
        self._accounts: dict[Key, Account] = {}
        self._lines: dict[tuple[str, str], tuple[BudgetLine, ...]] = {}

    @property
    def accounts(self) -> Kept:
        """Every account that was ever needed."""
        return self._accounts

    def tenant(self, name: str) -> GatewayTenant:
        """One tenant; raises `KeyError`."""
        return self._tenants[name]

    def replace(self, tenants: Mapping[str, GatewayTenant], prices: Iterable[ModelPrice], now: float) -> None:
        """Other limits; an account that has none any longer is forgotten."""
        self._tenants = tenants
        self._prices = {price.model: price.tariff() for price in prices}
        self._lines = {}
        stated = {
            (tenant.name, model, unit): amount
            for tenant in tenants.values()
            for model, limits in _scopes(tenant)
            for unit, amount in _limits(limits)
        }
        for key in self._accounts.keys() - stated.keys():
            del self._accounts[key]
        for key, account in self._accounts.items():
            account.resize(stated[key], now)

    def of(self, tenant: str, model: str, now: float) -> tuple[BudgetLine, ...]:
        """The lines of a request; raises `KeyError` for a tenant that is not there."""
        lines = self._lines.get((tenant, model))
        if lines is None:
            lines = self._lines[tenant, model] = tuple(self._made(self._tenants[tenant], model, now))
        return lines

    def account(self, key: Key, now: float) -> Account | None:
        """An account, made if it has a limit; ``None`` = it has none."""
        tenant, model, unit = key
        scopes = dict(_scopes(self._tenants[tenant])) if tenant in self._tenants else {}
        limit = dict(_limits(scopes[model])).get(unit) if model in scopes else None
        return None if limit is None else self._account(key, limit, now)

    def _made(self, tenant: GatewayTenant, model: str, now: float) -> Iterator[BudgetLine]:
        for scope, limits in _scopes(tenant):
            if scope not in (None, model):
                continue
            weights = next((m.weights for m in tenant.models if m.model == scope and m.weights), tenant.weights)
            tariffs = dict.fromkeys(TOKENS, weights.tariff())
            for unit, limit in _limits(limits):
                tariff = self._prices.get(model) if unit is Unit.USD_PER_MONTH else tariffs.get(unit)
                if unit is Unit.USD_PER_MONTH and tariff is None:
                    yield BudgetLine(unit, scope, ClosedAccount(limit), None)
                else:
                    yield BudgetLine(unit, scope, self._account((tenant.name, scope, unit), limit, now), tariff)

    def _account(self, key: Key, limit: int, now: float) -> Account:
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = self._new_account(key, limit, now)
        return account


def _scopes(tenant: GatewayTenant) -> Iterator[tuple[str | None, Limits]]:
    """The tenant's own limits, then those of its models; of two for one model the first counts."""
    yield None, tenant
    seen = set()
    for limits in tenant.models:
        if limits.model not in seen:
            seen.add(limits.model)
            yield limits.model, limits


def _limits(limits: Limits) -> Iterator[tuple[Unit, int]]:
    stated = (
        (Unit.REQUESTS_PER_MINUTE, limits.requests_per_minute),
        (Unit.CONCURRENT_REQUESTS, limits.concurrent_requests),
        (Unit.TOKENS_PER_MINUTE, limits.tokens_per_minute),
        (Unit.TOKENS_PER_DAY, limits.tokens_per_day),
    )
    yield from ((unit, limit) for unit, limit in stated if limit is not None)
    if limits.usd_per_month is not None:
        yield Unit.USD_PER_MONTH, round(limits.usd_per_month * PICODOLLARS_PER_USD)
