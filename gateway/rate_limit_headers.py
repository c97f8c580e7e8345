"""``x-ratelimit-*`` in OpenAI's form: the tightest budget of requests and the tightest of tokens by the minute."""

import math
from collections.abc import Iterable

from gateway.accounts import Standing
from gateway.budget_lines import BudgetLine, Unit

Header = tuple[str, str]


def rate_limit_headers(lines: Iterable[BudgetLine], now: float) -> tuple[Header, ...]:
    """How the limits stand; what has no limit has no header, and a longer period counts where there is no shorter."""
    tightest: dict[Unit, Standing] = {}
    for unit, _, account, _ in lines:
        standing, found = account.standing(now), tightest.get(unit)
        if found is None or standing.remaining < found.remaining:
            tightest[unit] = standing
    requests = tightest.get(Unit.REQUESTS_PER_MINUTE) or tightest.get(Unit.CONCURRENT_REQUESTS)
    tokens = tightest.get(Unit.TOKENS_PER_MINUTE) or tightest.get(Unit.TOKENS_PER_DAY)
    return _headers("requests", requests) + _headers("tokens", tokens)


def _headers(noun: str, standing: Standing | None) -> tuple[Header, ...]:
    if standing is None:
        return ()
    return (
        (f"x-ratelimit-limit-{noun}", str(standing.limit)),
        (f"x-ratelimit-remaining-{noun}", str(standing.remaining)),
        (f"x-ratelimit-reset-{noun}", duration(standing.reset_seconds)),
    )


def duration(seconds: float) -> str:
    """As OpenAI writes it: ``20ms``, ``1s``, ``6m0s``; rounded up, so that who waits as told is not early."""
    if seconds <= 0:
        return "0s"
    milliseconds = math.ceil(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
