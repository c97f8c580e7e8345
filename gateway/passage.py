"""One admitted request on its way: what the relay is told about it, and what it tells when the request ends."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gateway.refusals import Refused
from gateway.token_usage import TokenUsage


class End(StrEnum):
    """How a request ended; the value is a metric's label."""

    WHOLE = "whole"
    CLIENT_LEFT = "client_left"
    ENGINE_LOST = "engine_lost"
    ENGINE_LATE = "engine_late"
    NO_ENGINE = "no_engine"
    FAILED = "failed"
    """By a fault of the gateway's own."""
    REFUSED = "refused"
    """It waited for its turn in vain."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known about a request once it is over."""

    end: End
    status: int
    """Of the engine's answer; 0 = there was none."""
    usage: TokenUsage | None
    """As the engine says; ``None`` = it did not come to it."""
    events: int = 0
    """Events with output that the client was sent: hardly ever more tokens than that came, and seldom fewer."""


class Passage(Protocol):
    """What the decision says about a request."""

    @property
    def is_usage_injected(self) -> bool:
        """Whether usage was asked for in the client's place, so that it must not see it."""

    @property
    def is_stream(self) -> bool:
        """Whether the client asked for a stream, in which comments can stand."""

    @property
    def idle_seconds(self) -> float:
        """How long the engine may send nothing once it has begun."""

    @property
    def first_byte_seconds(self) -> float:
        """How long the engine may take to the first byte of its answer."""

    async def turn(self) -> tuple[str, ...] | Refused:
        """The engines to try, best first, when it is this request's turn."""

    def edited(self, body: bytes) -> bytes:
        """The body that engines get."""

    def sent_to(self, address: str) -> None:
        """This engine has it now."""

    def began(self) -> None:
        """The first byte of its answer came."""

    def end(self, ending: Ending) -> None:
        """The request is over; only the first call counts."""


class Passages(Protocol):
    """The requests that were admitted and did not arrive yet."""

    def take(self, ticket: str) -> Passage | None:
        """The one with a ticket, once; ``None`` = there is none."""
