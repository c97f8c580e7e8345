"""Requests that Envoy takes to the engines itself: what it is told about them, and how their end comes back to us.

The guard sees every end. Here Envoy's access log tells it: while a request runs, a line every few seconds says that it
does, and the last one says how it ended, with what a script in Envoy has read in the answer.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence

import structlog

from gateway.access_log_service import METHOD, AccessLogReceiver, EndedRequest
from gateway.admitted import Admitted
from gateway.envoy_clusters import GATEWAY_METADATA
from gateway.envoy_lua import EVENTS_KEY, USAGE_KEY
from gateway.envoy_presence import EnvoyPresence
from gateway.error_places import kind_and_place
from gateway.http2.grpc_server import grpc_server
from gateway.http2.protocol import Http2Server
from gateway.passage import End, Ending
from gateway.tickets import Tickets
from gateway.token_usage import TokenUsage, usage_of

HEARTBEAT_SECONDS = 10.0
"""How often Envoy says that a request still runs."""
UNHEARD_SECONDS = 35.0
"""Without a word of Envoy's it is gone, and the request with it."""
_log = structlog.get_logger("gateway.unguarded")
_BY_ENGINE = "via_upstream"
_NOT_REACHED = frozenset(("UH", "UF", "NC", "NR"))
_TOO_LATE = frozenset(("UT", "SI", "DT", "UMSDR"))


class Unguarded:
    """The requests of this kind that run, by their tickets."""

    def __init__(self, new_ticket: Callable[[], str], now_unix_seconds: Callable[[], float]) -> None:
        self._new_ticket = new_ticket
        self._now = now_unix_seconds
        self._running: dict[str, tuple[float, Admitted]] = {}
        """When each is given up; the dictionary's order is that of these moments."""
        self._on_empty: asyncio.Event | None = None
        self._presence: EnvoyPresence | None = None

    def watch(self, presence: EnvoyPresence | None) -> None:
        """Give requests up sooner when Envoy is gone; ``None`` = not any more: who stops closes connections himself."""
        self._presence = presence

    def __len__(self) -> int:
        """Requests whose end was not told."""
        return len(self._running)

    def add(self, admitted: Admitted) -> str:
        """The ticket of a request that goes to its first engine now."""
        ticket = self._new_ticket()
        self._running[ticket] = (self._now() + UNHEARD_SECONDS, admitted)
        admitted.depart()
        return ticket

    def give_up(self, ticket: str) -> None:
        """Its client left before Envoy had read the decision."""
        found = self._running.pop(ticket, None)
        if found is not None:
            found[1].never_came()
        self._tell_whether_empty()

    def still_running(self, tickets: Sequence[str]) -> None:
        """Envoy has them."""
        end = self._now() + UNHEARD_SECONDS
        for ticket in tickets:
            found = self._running.pop(ticket, None)
            if found is not None:
                self._running[ticket] = (end, found[1])
                found[1].renew()

    def ended(self, batch: Sequence[EndedRequest]) -> None:
        """Envoy has told how these ended; what the guard passed on is none of them."""
        for one in batch:
            found = self._running.pop(one.ticket, None)
            if found is not None:
                _end_one(found[1], one)
        self._tell_whether_empty()

    async def drain(self, server: Http2Server, deadline_seconds: float) -> None:
        """Let every request end, but no longer than this, then close the log."""
        if self._running:
            self._on_empty = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._on_empty.wait(), deadline_seconds)
        await server.drain(0)

    def expire(self, now: float) -> None:
        """Give up those of which nothing was heard: they are charged what they hold, which nobody can know better."""
        left = None if self._presence is None else self._presence.patience_left(now)
        if left is not None:
            self._running = {ticket: (min(end, now + left), one) for ticket, (end, one) in self._running.items()}
        while self._running:
            ticket, (end, admitted) = next(iter(self._running.items()))
            if end > now:
                return
            del self._running[ticket]
            admitted.end(Ending(End.UNKNOWN, 0, None))

    def _tell_whether_empty(self) -> None:
        if self._on_empty is not None and not self._running:
            self._on_empty.set()


def access_log_server(unguarded: Unguarded, tickets: Tickets) -> Http2Server:
    """Where Envoy tells, on the running event loop; the guard knows the ends of requests that have reached it."""

    def ended(batch: Sequence[EndedRequest]) -> None:
        unguarded.ended(batch)
        for one in batch:
            tickets.give_up(one.ticket)

    receiver = AccessLogReceiver(
        ended,
        on_running=unguarded.still_running,
        namespaces=(GATEWAY_METADATA,),
        on_failure=_failed,
    )
    clock = asyncio.get_running_loop().time
    return grpc_server({METHOD: receiver.open}, clock=clock, on_failure=_failed)


def _failed() -> None:
    _log.error("access_log.failed", **kind_and_place())


def _end_one(admitted: Admitted, one: EndedRequest) -> None:
    """Its endpoint is known to serve, or to be away, by this."""
    ending = ending_of(one)
    admitted.answered_by(one.endpoint, one.first_byte_seconds)
    if one.first_byte_seconds is not None and ending.status:
        admitted.went_well(one.endpoint)
    elif one.endpoint and ending.end in {End.NO_ENGINE, End.ENGINE_LOST}:
        admitted.failed(one.endpoint)
    admitted.end(ending)


def ending_of(one: EndedRequest) -> Ending:
    """How a request ended, in the words of the guard."""
    found = one.metadata.get(GATEWAY_METADATA, {})
    events = found.get(EVENTS_KEY)
    end = _end(one)
    has_begun = end is End.WHOLE or (one.first_byte_seconds is not None and one.status < 500)
    status = one.status if has_begun else 0
    return Ending(end, status, _usage(found.get(USAGE_KEY)), int(events) if isinstance(events, float) else 0)


def _end(one: EndedRequest) -> End:
    if one.client_left:
        return End.CLIENT_LEFT
    if one.details == _BY_ENGINE:
        return End.WHOLE
    flags = set(one.flags)
    if not one.endpoint or flags & _NOT_REACHED:
        return End.NO_ENGINE
    return End.ENGINE_LATE if flags & _TOO_LATE else End.ENGINE_LOST


def _usage(stated: object) -> TokenUsage | None:
    if not isinstance(stated, str):
        return None
    try:
        return usage_of(json.loads(stated))
    except (ValueError, RecursionError):
        return None
