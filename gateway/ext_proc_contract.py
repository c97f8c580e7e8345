"""What external processing asks of the rest of the gateway: an endpoint for a request, a filter for a response."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from gateway.asked import Request
from gateway.body_edits import Edit

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class PickRequest:
    """A whole request, and where it may go."""

    request: Request
    subset: tuple[str, ...] | None = None
    """The ``ip:port`` that the proxy allows; ``None`` = any."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A request goes to the first of these endpoints, to the next ones when a connection fails."""

    endpoints: tuple[str, ...]
    headers_to_set: Pairs = ()
    headers_to_remove: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    ticket: str = field(default="", repr=False)
    """What the picker knows it by."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The gateway answers itself; nothing goes to an engine."""

    status: int
    body: bytes = field(repr=False)
    headers: Pairs = ()
    code: str = "answered"
    """For the access log: a word, nothing of the request."""


Verdict = Pick | Reply


class EndpointPicker(Protocol):
    """Decides about requests; what it raises refuses the request."""

    @property
    def reads_answers(self) -> bool:
        """Whether it has to see every answer: a proxy that does not hand them over gets nothing decided."""

    def pick(self, asked: PickRequest, now: float) -> Verdict | Awaitable[Verdict]:
        """At once, or later when the request has to wait.

        The awaitable is cancelled when the client leaves, perhaps before it has begun.
        """

    def filter_of(self, pick: Pick, head: "ResponseHead") -> "ChosenFilter | None":
        """What the answer passes, after ``responded``; ``None`` = it goes on as it is, what it raises ends it."""

    def responded(self, pick: Pick, status: int, served: str | None) -> None:
        """The engine's status; ``served`` = the endpoint that gave it, where the proxy says so."""

    def passed(self, pick: Pick, data: bytes) -> None:
        """A piece of the engine's answer, where the proxy hands the answer over."""

    def ended(self, pick: Pick, *, is_whole: bool) -> None:
        """The call is over, and with it the request if the proxy keeps the call until then; said once for each pick.

        ``is_whole`` = the end of the answer has passed here; otherwise somebody left, or the answer is not handed over.
        """


class ResponseFilter(Protocol):
    """Changes the body of one response as it passes."""

    @property
    def has_ended(self) -> bool:
        """The filter has ended the answer: the client gets its end now, and the engine is stopped."""

    def feed(self, data: bytes, now: float) -> bytes:
        """What may go out now that these bytes have come."""

    def flush_due(self, now: float) -> bytes:
        """What has been held back for long enough."""

    def close(self, now: float) -> bytes:
        """The rest, after the last bytes."""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What is known of a response before its body."""

    metadata: Mapping[str, str] = field(repr=False)
    """What the decision left: tenant, model, name of the filter."""
    headers: Mapping[str, str] = field(repr=False)
    """By lower-case name, with ``:status``."""


@dataclass(frozen=True, slots=True)
class ChosenFilter:
    """A filter and what happens when it fails."""

    filter: ResponseFilter
    fails_open: bool = False
    """What happens when the filter raises: the rest of the body passes unfiltered. Otherwise the response ends there.

    What a filter holds when it raises is lost, so one that can fail better does it by itself.
    """
    on_closed: Callable[[], None] = lambda: None
    """Called once when the response is over, whoever ended it."""
    headers_to_set: Pairs = ()
    is_timed: bool = True
    """Whether ``flush_due`` has something to do."""
    instead: Callable[[], Reply | None] | None = None
    """What the client gets in the place of an answer of which nothing has left; asked once, after its end.

    ``None`` = the headers leave at once. Otherwise they leave with the first byte, or at the end.
    """


class FilterChooser(Protocol):
    """Chooses the filter of a response; what it raises ends the response."""

    def choose(self, head: ResponseHead) -> ChosenFilter | None:
        """``None`` = this response is not filtered."""
