"""The stream guard: passes an engine's stream on byte by byte, keeps it alive, and never lets it end in silence.

It stands between Envoy and the engines, because nobody behind Envoy learns that an engine broke off. Who may ask what
was decided before: a request comes with a ticket of that decision, or not at all.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from gateway.engine_connections import EngineConnections
from gateway.error_places import kind_and_place
from gateway.exchange import Exchange, HttpResponse
from gateway.ext_authz import TICKET_HEADER
from gateway.http_protocol import HttpRequest, HttpServer, Later
from gateway.passage import Passages
from gateway.refusals import Reason, error_body
from gateway.relay import Relay
from gateway.shadows import Shadows

_log = structlog.get_logger("gateway.guard")
MAX_BODY_BYTES = 9 * 1024 * 1024
"""A little more than Envoy lets in, for the engine's own edits."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """What people may set."""

    keep_alive_seconds: float = 15.0
    """Silence after which a comment is sent; idle limits on the way are often 60 s."""


class Guard:
    """The relay of one worker."""

    def __init__(
        self, passages: Passages, engines: EngineConnections, settings: GuardSettings, shadows: Shadows | None = None
    ) -> None:
        self._passages = passages
        self._engines = engines
        self._settings = settings
        self._shadows = shadows
        self._running: dict[asyncio.Task[None], Relay] = {}

    @property
    def running(self) -> int:
        """Streams on their way."""
        return len(self._running)

    def server(self, on_failure: Callable[[HttpRequest], HttpResponse]) -> HttpServer:
        """What a listener makes connections from."""
        server = HttpServer(self.handle, max_body_bytes=MAX_BODY_BYTES, on_failure=on_failure)
        server.on_cut_short = self._cut_short
        server.on_deadline = self._stop
        return server

    def _stop(self) -> None:
        """What is still on its way can't wait for its end."""
        for relay in tuple(self._running.values()):
            try:
                relay.stop()
            except Exception:  # the others have to be told all the same
                _log.error("relay.not_stopped", **kind_and_place())

    def _cut_short(self, headers: Mapping[str, str]) -> None:
        self._passages.give_up(headers.get(TICKET_HEADER, ""))

    def handle(self, request: HttpRequest) -> HttpResponse | Later:
        """Relay one request."""
        passage = self._passages.take(request.headers.get(TICKET_HEADER, ""))
        if passage is None:
            body = error_body(403, "This request was not admitted by the gateway.", code=Reason.NOT_ADMITTED)
            return HttpResponse(403, (("content-type", "application/json"),), body)

        def begin(exchange: Exchange) -> None:
            relay = Relay(request, exchange, passage, self._engines, self._settings.keep_alive_seconds, self._shadows)
            task = asyncio.get_running_loop().create_task(relay.run())
            exchange.on_gone = relay.client_left
            self._running[task] = relay
            task.add_done_callback(self._running.pop)

        return begin
