"""``x-ratelimit-*`` in OpenAI's form: the tightest budget of requests and the tightest of tokens by the minute."""

import math
from collections.abc import Iterable

from gateway.accounts import Standing
from gateway.budget_lines import BudgetLine, Unit

Header = tuple[str, str]

_SHOWN = (
    ("requests", (Unit.REQUESTS_PER_MINUTE, Unit.CONCURRENT_REQUESTS)),
    ("tokens", (Unit.TOKENS_PER_MINUTE, Unit.TOKENS_PER_DAY)),
)


def rate_limit_headers(lines: Iterable[BudgetLine], now: float) -> tuple[Header, ...]:
    """How the limits stand; what has no limit has no header, and a longer period counts where there is no shorter."""
    stated = [(line.unit, line.account.standing(now)) for line in lines if line.unit is not Unit.USD_PER_MONTH]
    headers: list[Header] = []
    for noun, units in _SHOWN:
        standings = next((found for unit in units if (found := [s for u, s in stated if u is unit])), None)
        if standings:
            headers += _headers(noun, min(standings, key=lambda standing: standing.remaining))
    return tuple(headers)


def _headers(noun: str, standing: Standing) -> tuple[Header, ...]:
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
