"""Envoy's external processing on own framing: endpoint picker of the Gateway API Inference Extension, output filter.

One call stands for one request of a client. Its request's side and its response's side know nothing of each other.
"""

from collections.abc import Callable
from typing import Protocol

import structlog

from gateway.error_places import kind_and_place
from gateway.ext_proc_contract import ChosenFilter, EndpointPicker, FilterChooser, ResponseHead
from gateway.ext_proc_filtering import FilteringSide, FilteringTools, RefusingSide
from gateway.ext_proc_messages import BadMessage, BodyMode, Incoming, read
from gateway.ext_proc_picking import PassingSide, PickingSide, PickingTools
from gateway.http2.grpc_calls import Call, CallRefused, Timer
from gateway.http2.grpc_status import Status

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
METHOD = f"/{SERVICE}/Process"
DECISION_NAMESPACE = "envoy.filters.http.ext_authz"
FLUSH_SECONDS = 0.05
_STATED_PREFIX = b"x-gateway-"
_UNSET = (b"", b"-")
Choose = Callable[[ResponseHead], ChosenFilter | None]

_log = structlog.get_logger("gateway.ext_proc")


class Side(Protocol):
    """What one side of a call does with what comes."""

    def headers(self, incoming: Incoming) -> None:
        """The headers."""

    def body(self, incoming: Incoming) -> None:
        """A piece of the body."""

    def trailers(self, incoming: Incoming) -> None:
        """The trailers."""

    def closed(self) -> None:
        """The call is over."""


class ExternalProcessor:
    """What all calls share; ``open`` is the gRPC method."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        call_later: Callable[[float, Callable[[], None]], Timer],
        picker: EndpointPicker | None = None,
        chooser: FilterChooser | None = None,
    ) -> None:
        """``clock`` gives monotonic seconds; without a picker or a chooser that side passes unchanged."""
        self.picking = None if picker is None else PickingTools(picker, clock, log_failure)
        self.filtering = FilteringTools(clock, log_failure)
        self.chooser = chooser
        self._call_later = call_later
        self._ticking: set[FilteringSide] = set()
        self._timer: Timer | None = None

    def open(self, call: Call) -> "Processing":
        """Take the call for one request of a client."""
        return Processing(call, self)

    def start_ticking(self, side: FilteringSide) -> None:
        """Flush a filter in time from now on."""
        self._ticking.add(side)
        if self._timer is None:
            self._timer = self._call_later(FLUSH_SECONDS, self._tick)

    def stop_ticking(self, side: FilteringSide) -> None:
        """The response is over."""
        self._ticking.discard(side)

    def _tick(self) -> None:
        self._timer = None
        for side in tuple(self._ticking):
            side.tick()
        if self._ticking:
            self._timer = self._call_later(FLUSH_SECONDS, self._tick)


class Processing:
    """One call. While the proxy does not take what is sent, nothing more is taken from it."""

    def __init__(self, call: Call, shared: ExternalProcessor) -> None:
        self._call = call
        self._shared = shared
        self._modes: tuple[BodyMode | None, BodyMode | None] = (None, None)
        self._metadata = _stated(call)
        self._request: Side | None = None
        self._response: Side | None = None
        self._is_started = False

    def message(self, data: bytes) -> None:
        """The proxy's next message."""
        try:
            incoming = read(data)
        except BadMessage as error:
            raise CallRefused(Status.INVALID_ARGUMENT, str(error)) from None
        if not self._is_started:
            self._start(incoming)
        side, _, part = incoming.kind.partition("_")
        if side == "request":
            self._take(self._request or self._request_side(incoming), part, incoming)
        elif side == "response":
            if isinstance(self._request, PickingSide):
                self._request.answered(incoming)
            self._take(self._response or self._response_side(incoming), part, incoming)
        if self._call.is_blocked:
            self._call.pause()

    def half_closed(self) -> None:
        """The proxy has nothing more."""
        self._call.finish()

    def writable(self) -> None:
        """The proxy has taken what was sent."""
        self._call.resume()

    def closed(self) -> None:
        """The call is over."""
        for side in (self._request, self._response):
            if side is not None:
                side.closed()
            if isinstance(side, FilteringSide):
                self._shared.stop_ticking(side)

    def _start(self, incoming: Incoming) -> None:
        self._is_started = True
        if incoming.is_observed_only:
            raise CallRefused(Status.FAILED_PRECONDITION, "observability_mode would let everything pass unchecked")
        try:
            self._modes = incoming.body_modes or (None, None)
        except BadMessage as error:
            raise CallRefused(Status.INVALID_ARGUMENT, str(error)) from None

    def _take(self, side: Side, part: str, incoming: Incoming) -> None:
        if part == "body":
            side.body(incoming)
        elif part == "headers":
            side.headers(incoming)
        else:
            side.trailers(incoming)

    def _request_side(self, incoming: Incoming) -> Side:
        tools, mode = self._shared.picking, self._modes[0]
        self._metadata |= incoming.metadata(DECISION_NAMESPACE)
        if tools is None:
            self._request = PassingSide(self._call, "request", mode)
        elif incoming.kind == "request_headers":
            self._check_answers(tools)
            self._request = PickingSide(self._call, tools, mode)
        else:
            raise CallRefused(Status.FAILED_PRECONDITION, "request_header_mode must be SEND: the headers are needed")
        return self._request

    def _check_answers(self, tools: PickingTools) -> None:
        if tools.picker.reads_answers and self._modes[1] not in {None, BodyMode.FULL_DUPLEX_STREAMED}:
            message = "response_body_mode must be FULL_DUPLEX_STREAMED: what a request used is read in its answer"
            raise CallRefused(Status.FAILED_PRECONDITION, message)

    def _response_side(self, incoming: Incoming) -> Side:
        choose = self._choose()
        if choose is None:
            self._response = PassingSide(self._call, "response", self._modes[1])
        elif incoming.kind == "response_headers":
            self._response = self._chosen_side(choose, incoming)
        else:
            raise CallRefused(Status.FAILED_PRECONDITION, "response_header_mode must be SEND: the headers are needed")
        return self._response

    def _choose(self) -> Choose | None:
        """Who says what the answer passes."""
        if isinstance(self._request, PickingSide) and self._request.reads_answers:
            return self._request.filter_of
        chooser = self._shared.chooser
        return None if chooser is None else chooser.choose

    def _chosen_side(self, choose: Choose, incoming: Incoming) -> Side:
        metadata = self._metadata | incoming.metadata(DECISION_NAMESPACE)
        try:
            chosen = choose(ResponseHead(metadata, incoming.headers))
        except Exception:
            log_failure()
            return RefusingSide(self._call)
        if chosen is None:
            return PassingSide(self._call, "response", self._modes[1])
        side = FilteringSide(self._call, self._shared.filtering, chosen, self._modes[1])
        if chosen.is_timed:
            self._shared.start_ticking(side)
        return side


def _stated(call: Call) -> dict[str, str]:
    """What the proxy says of the decision once, when it opens the call, instead of with every message."""
    stated = [(name, value) for name, value in call.metadata if name.startswith(_STATED_PREFIX)]
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in stated if value not in _UNSET}


def log_failure() -> None:
    """Say that something raised, and where."""
    _log.error("ext_proc.failed", **kind_and_place())
