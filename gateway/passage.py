"""One admitted request on its way: what the relay is told about it, and what it tells when the request ends."""

from enum import StrEnum
from typing import NamedTuple, Protocol

from fleet.snapshot import GatewayRoute
from gateway.answer_filter import AnswerFilter
from gateway.mirror import Mirror
from gateway.refusals import Refused
from gateway.targets import Target
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
    FILTERED = "filtered"
    """The output filter ended the answer before the engine did."""
    REVOKED = "revoked"
    """Whoever asked may not any more: a session ends with its key."""
    UNKNOWN = "unknown"
    """Envoy had it and is gone."""


class Ending(NamedTuple):
    """What is known about a request once it is over."""

    end: End
    status: int
    """Of the engine's answer; 0 = there was none."""
    usage: TokenUsage | None
    """As the engine says; ``None`` = it did not come to it."""
    events: int = 0
    """Events with output that the client was sent: hardly ever more tokens than that came, and seldom fewer."""


class Patience(NamedTuple):
    """How long an engine may take."""

    first_byte_seconds: float = 600.0
    """An answer that is not streamed sends nothing until its end."""
    idle_seconds: float = 600.0

    def of(self, route: GatewayRoute) -> "Patience":
        """What the route says, and this where it says nothing."""
        if route.first_byte_seconds is None and route.idle_seconds is None:
            return self
        return Patience(route.first_byte_seconds or self.first_byte_seconds, route.idle_seconds or self.idle_seconds)


class Passage(Protocol):
    """What the decision says about a request."""

    @property
    def is_usage_injected(self) -> bool:
        """Whether usage was asked for in the client's place, so that it must not see it."""

    @property
    def output_filter(self) -> AnswerFilter | None:
        """What its answer passes; ``None`` = nothing is filtered."""

    @property
    def is_stream(self) -> bool:
        """Whether the client asked for a stream, in which comments can stand."""

    @property
    def mirror(self) -> Mirror | None:
        """A copy for a shadow."""

    @property
    def patience(self) -> Patience:
        """How long the engine may take to its first byte, and from one to the next."""

    @property
    def model(self) -> str:
        """The public name of the model that serves; after a fallback it is another one."""

    @property
    def may_fall_back(self) -> bool:
        """Whether another arm or model may be left when the engines of this turn have failed."""

    def fall_back(self) -> bool:
        """Take the next arm or model, whose turn is asked for then; ``False`` = there is none."""

    async def turn(self) -> tuple[str, ...] | Refused:
        """The engines to try, best first, when it is this request's turn."""

    def edited(self, body: bytes) -> bytes:
        """The body that engines get."""

    def may_ask(self, address: str) -> bool:
        """Whether this engine takes one more request now; who is told so asks it."""

    def target(self, address: str) -> Target:
        """How this engine is reached."""

    def sent_to(self, address: str) -> None:
        """This engine has it now."""

    def went_well(self, address: str) -> None:
        """This engine has begun to answer, and not with a fault of its own."""

    def failed(self, address: str, pause_seconds: float = 0.0) -> bool:
        """This engine was asked in vain, and wants to be left alone for a while; whether it is ejected by that."""

    def began(self) -> None:
        """The first byte of its answer came."""

    def end(self, ending: Ending) -> None:
        """The request is over; only the first call counts."""


class Passages(Protocol):
    """The requests that were admitted and did not arrive yet."""

    def take(self, ticket: str) -> Passage | None:
        """The one with a ticket, once; ``None`` = there is none."""

    def give_up(self, ticket: str) -> None:
        """The one with a ticket will not arrive whole."""
