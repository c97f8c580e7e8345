"""What serving a request counts for in the fair queues, and how long its answer is likely to be. Pure."""

from collections.abc import Collection

OUTPUT_TOKEN = 2.0
"""An output token keeps an engine busy longer than one of the input, which is computed beside others."""
CACHED_TOKEN = 0.1
_FIRST_GUESS_TOKENS = 200.0
_LEARNED = 0.1


def service(input_tokens: int, cached_tokens: int, output_tokens: float) -> float:
    """The service that an answer took; ``cached_tokens`` are among ``input_tokens``."""
    return input_tokens - (1 - CACHED_TOKEN) * cached_tokens + OUTPUT_TOKEN * output_tokens


class OutputGuess:
    """How many tokens the next answer of a tenant may have, from those before."""

    def __init__(self) -> None:
        self._tokens: dict[str, float] = {}

    def learn(self, tenant: str, tokens: int) -> None:
        """An answer had so many."""
        known = self._tokens.get(tenant, _FIRST_GUESS_TOKENS)
        self._tokens[tenant] = known + _LEARNED * (tokens - known)

    def tokens(self, tenant: str) -> float:
        """The mean, in which the newest count most."""
        return self._tokens.get(tenant, _FIRST_GUESS_TOKENS)

    def keep_only(self, tenants: Collection[str]) -> None:
        """Forget the others."""
        self._tokens = {tenant: tokens for tenant, tokens in self._tokens.items() if tenant in tenants}
