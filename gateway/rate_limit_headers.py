"""``x-ratelimit-*`` in OpenAI's form: the tightest budget of requests and the tightest of tokens by the minute."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from gateway.accounts import Standing
from gateway.budget_lines import BudgetLine, Unit

Header = tuple[str, str]


class _Names(NamedTuple):
    limit: str
    remaining: str
    reset: str


_OF_REQUESTS, _OF_TOKENS = (
    _Names(*(f"x-ratelimit-{what}-{noun}" for what in _Names._fields)) for noun in ("requests", "tokens")
)


def rate_limit_headers(lines: Sequence[BudgetLine], now: float) -> tuple[Header, ...]:
    """How the limits stand; what has no limit has no header, and a longer period counts where there is no shorter."""
    requests = _tightest(lines, Unit.REQUESTS_PER_MINUTE, now) or _tightest(lines, Unit.CONCURRENT_REQUESTS, now)
    tokens = _tightest(lines, Unit.TOKENS_PER_MINUTE, now) or _tightest(lines, Unit.TOKENS_PER_DAY, now)
    return _headers(_OF_REQUESTS, requests) + _headers(_OF_TOKENS, tokens)


def _tightest(lines: Sequence[BudgetLine], wanted: Unit, now: float) -> Standing | None:
    tightest: Standing | None = None
    for unit, _, account, _ in lines:
        if unit is wanted:
            standing = account.standing(now)
            if tightest is None or standing.remaining < tightest.remaining:
                tightest = standing
    return tightest


def _headers(names: _Names, standing: Standing | None) -> tuple[Header, ...]:
    if standing is None:
        return ()
    limit, remaining, reset_seconds = standing
    return (
        (names.limit, str(limit)),
        (names.remaining, str(remaining)),
        (names.reset, duration(reset_seconds)),
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
