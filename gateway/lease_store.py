"""What a gateway needs of a store that it shares with others, whatever the store is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gateway.budget_store import Wish
from gateway.errors import GatewayError
from gateway.token_lease import Share


class StoreLostError(GatewayError):
    """The store can't be reached, or does not answer in time, or not as it should."""


@dataclass(frozen=True, slots=True)
class Joined:
    """How the store stands, as it says to one gateway."""

    epoch: str
    """A word for its memory: another one = it has forgotten everything."""
    age_seconds: float
    """How long it has had this memory."""
    share: Share
    """How many gateways it knows, and which of them this one is."""


class SharedStore(Protocol):
    """The store; every call may raise `StoreLostError`."""

    async def join(self) -> Joined:
        """Say that this gateway is there."""

    async def take(self, wishes: Sequence[Wish], epoch: str) -> Sequence[int | None]:
        """What is granted of each wish; ``None`` = its memory is not this one, so that the wish was not served."""

    async def leave(self) -> None:
        """Say that this gateway ends, and close what is open."""
