"""Upgrades that were authorised and are on their way from Envoy to the service that ends them."""

from collections.abc import Callable

LIFETIME_SECONDS = 10.0
"""Envoy passes an upgrade on at once."""


class SocketTickets:
    """The tenant of each upgrade, once, by a number that nobody can guess."""

    def __init__(self, new_ticket: Callable[[], str]) -> None:
        self._new_ticket = new_ticket
        self._waiting: dict[str, tuple[float, str]] = {}

    def add(self, tenant: str, now: float) -> str:
        """The ticket of an upgrade."""
        ticket = self._new_ticket()
        self._waiting[ticket] = (now + LIFETIME_SECONDS, tenant)
        return ticket

    def take(self, ticket: str) -> str | None:
        """The tenant of a ticket; ``None`` = there is none, or it came before."""
        found = self._waiting.pop(ticket, None)
        return None if found is None else found[1]

    def expire(self, now: float) -> None:
        """Forget those that never came."""
        for ticket in [ticket for ticket, (end, _) in self._waiting.items() if end <= now]:
            del self._waiting[ticket]
