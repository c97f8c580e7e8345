"""What budgets keep over a restart: the charges of the day and the month, and the level of each bucket."""

from collections.abc import Iterable, Iterator

from fleet.spec import Name
from fleet.value import Value
from gateway.budget_lines import BudgetLines, Unit
from gateway.calendar_account import CalendarAccount
from gateway.token_bucket import TokenBucket


class KeptAccount(Value):
    """One account. What requests on their way hold counts as charged: if we are killed, nobody hears of their ends."""

    tenant: Name
    model: str | None = None
    """``None`` = the tenant's own."""
    unit: Unit
    unix_seconds: float
    """When its window began; for a bucket, when its level was this."""
    amount: int
    """What was charged or is held in the window, or the level."""


def kept_accounts(lines: BudgetLines, now: float) -> Iterator[KeptAccount]:
    """Every account that knows something."""
    for (tenant, model, unit), account in lines.accounts.items():
        if isinstance(account, CalendarAccount):
            start, taken = account.taken(now)
            yield KeptAccount(tenant=tenant, model=model, unit=unit, unix_seconds=start, amount=taken)
        elif isinstance(account, TokenBucket):
            level = account.standing(now).remaining if account.level >= 0 else int(account.level)
            yield KeptAccount(tenant=tenant, model=model, unit=unit, unix_seconds=now, amount=level)


def restore_accounts(lines: BudgetLines, kept: Iterable[KeptAccount], now: float) -> None:
    """Go on from what was kept; what has no limit any longer, or belongs to a window that is over, is left out."""
    for item in kept:
        account = lines.account((item.tenant, item.model, item.unit), now)
        if isinstance(account, CalendarAccount):
            account.restore(item.unix_seconds, item.amount, now)
        elif isinstance(account, TokenBucket):
            account.restore(item.amount, min(item.unix_seconds, now))
