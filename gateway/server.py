"""The decision service: Envoy's HTTP ext_authz questions in, answers out. It fails closed."""

from collections.abc import Callable, Mapping
from functools import partial

import structlog

from gateway.asked import Opened, Request
from gateway.decision import Answered, Decision, DecisionCore
from gateway.error_forms import in_form_of
from gateway.error_places import kind_and_place
from gateway.exchange import HttpResponse
from gateway.ext_authz import (
    AUTHORIZE_PREFIX,
    MAX_BODY_BYTES,
    PARTIAL_BODY_HEADER,
    REMOVE_HEADER,
    TICKET_HEADER,
    UNAVAILABLE_ON_THE_WIRE,
    WORKER_HEADER,
)
from gateway.http_protocol import HttpRequest, HttpServer, Later
from gateway.paths import MODELS_PATH, REALTIME_PATH
from gateway.rate_limit_headers import Header
from gateway.refusals import Reason, Refused, refuse
from gateway.second_look import SecondLook
from gateway.socket_tickets import SocketTickets
from gateway.telemetry import Telemetry
from gateway.tickets import Tickets
from gateway.unguarded import Unguarded
from gateway.worker_sockets import WorkerSockets

_JSON = ("content-type", "application/json")
BeginSpan = Callable[[Mapping[str, str], str, Decision], tuple[Header, ...]]
"""Takes the headers of a question, the path and the decision; gives the headers by which the trace goes on."""
_log = structlog.get_logger("gateway.server")


class DecisionService:
    """The core behind the two questions that Envoy asks: may this go on, and which models are there."""

    def __init__(
        self,
        core: DecisionCore,
        telemetry: Telemetry,
        tickets: Tickets,
        unguarded: Unguarded,
        sockets: SocketTickets,
        *,
        now_unix_seconds: Callable[[], float],
        now_monotonic_seconds: Callable[[], float],
        begin_span: BeginSpan = lambda *_: (),
        second_look: SecondLook | None = None,
        sockets_of_worker: WorkerSockets | None = None,
    ) -> None:
        """``sockets_of_worker``: of this one, where there are others."""
        self._core = core
        self._telemetry = telemetry
        self._tickets = tickets
        self._unguarded = unguarded
        self._sockets = sockets
        self._now = now_unix_seconds
        self._stopwatch = now_monotonic_seconds
        self._begin_span = begin_span
        self._second_look = second_look
        own = sockets_of_worker
        self._here = () if own is None else ((WORKER_HEADER, str(own.guard)),)
        self._sockets_here = () if own is None else ((WORKER_HEADER, str(own.websockets)),)

    def server(self) -> HttpServer:
        """What a listener makes connections from."""
        return HttpServer(self.handle, max_body_bytes=MAX_BODY_BYTES, on_failure=self.fail)

    def handle(self, request: HttpRequest) -> HttpResponse | Later:
        """Answer one question of Envoy's."""
        if _is_question(request):
            target = request.target.removeprefix(AUTHORIZE_PREFIX)
            started = self._stopwatch()
            decision = self._decide(request, target)
            waited = None if self._second_look is None else self._second_look.wanted(decision)
            if waited is None or self._second_look is None:
                return self._answer(request, target, started, decision)
            again, answer = partial(self._decide, request, target), partial(self._answer, request, target, started)
            return self._second_look.later(waited, again, answer, partial(self.fail, request))
        if request.target.startswith(MODELS_PATH):
            started = self._stopwatch()
            decision = self._decide(request, request.target)
            self._telemetry.decided(decision, self._stopwatch() - started)
            return _page(decision)
        return HttpResponse(404)

    def _answer(self, request: HttpRequest, target: str, started: float, decision: Decision) -> HttpResponse:
        self._telemetry.decided(decision, self._stopwatch() - started)
        return self._verdict(decision, target, self._begin_span(request.headers, target, decision))

    def fail(self, request: HttpRequest) -> HttpResponse:
        """Deny, because the decision raised."""
        _log.error("decision.failed", **kind_and_place())
        refused = refuse(Reason.INTERNAL, "The gateway could not decide about this request; it was not passed on.")
        self._telemetry.count(None, None, refused.reason.value)
        is_question = _is_question(request)
        return _denied(refused, request.target.removeprefix(AUTHORIZE_PREFIX)) if is_question else _page(refused)

    def _verdict(self, decision: Decision, target: str, traced: tuple[Header, ...]) -> HttpResponse:
        """The answer to "may this go on": 200 lets the request through, everything else is passed to the client."""
        if isinstance(decision, Answered):
            # Models are asked for at their own route; here 200 would let the request through to an engine.
            decision = refuse(Reason.UNKNOWN_PATH, "There is nothing at this path.", tenant=decision.tenant)
        if isinstance(decision, Refused):
            return _denied(decision, target)
        if isinstance(decision, Opened):
            ticket = (TICKET_HEADER, self._sockets.add(decision.tenant, self._now()))
            return HttpResponse(200, (ticket, *self._sockets_here))
        admitted = decision.admitted
        if admitted.is_guarded:
            number, give_up = self._tickets.add(admitted, self._now()), self._tickets.give_up
        else:
            number, give_up = self._unguarded.add(admitted), self._unguarded.give_up
        ticket = (TICKET_HEADER, number)
        if target.partition("?")[0] == REALTIME_PATH:  # its key is looked up again while the session lasts
            here = self._sockets_here
        else:
            here = ((REMOVE_HEADER, ",".join(decision.headers_to_remove)), *self._here)
        headers = (*decision.headers_to_set, ticket, *here, *traced, *decision.client_headers)
        return HttpResponse(200, headers, on_unread=partial(give_up, number))

    def _decide(self, request: HttpRequest, target: str) -> Decision:
        if request.headers.get(PARTIAL_BODY_HEADER) == "true":
            return refuse(Reason.BODY_TOO_LARGE, f"The body is larger than {MAX_BODY_BYTES} bytes.")
        asked = Request(request.method, target, request.headers, request.body)
        return self._core.decide(asked, self._now())


def _is_question(request: HttpRequest) -> bool:
    return request.target.startswith(f"{AUTHORIZE_PREFIX}/")


def _denied(refused: Refused, target: str) -> HttpResponse:
    """A "no", which Envoy passes to the client, in the words of the API that was asked."""
    status = UNAVAILABLE_ON_THE_WIRE if refused.status == 503 else refused.status
    return HttpResponse(status, (_JSON, *refused.headers), in_form_of(refused, target).body)


def _page(decision: Decision) -> HttpResponse:
    """The answer to a client whose request Envoy passed to this service itself."""
    if isinstance(decision, Answered):
        return HttpResponse(200, (_JSON,), decision.body)
    if isinstance(decision, Refused):
        return HttpResponse(decision.status, (_JSON, *decision.headers), decision.body)
    return _page(refuse(Reason.UNKNOWN_PATH, "There is nothing at this path.", tenant=decision.tenant))
