"""The request's side of external processing: gathers a request, asks for an endpoint, sends the request on."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable

from gateway.asked import Request
from gateway.body_edits import apply_edits
from gateway.error_forms import in_form_of
from gateway.ext_authz import DESTINATION_HEADER, MAX_BODY_BYTES
from gateway.ext_proc_contract import ChosenFilter, EndpointPicker, Pick, PickRequest, Reply, ResponseHead, Verdict
from gateway.ext_proc_messages import (
    BodyMode,
    Incoming,
    headers_reply,
    immediate_reply,
    streamed_replies,
    unchanged_reply,
)
from gateway.http2.grpc_calls import Call, CallRefused
from gateway.http2.grpc_status import Status
from gateway.reach import Reach
from gateway.refusals import Reason, Refused, refuse

LB_NAMESPACE = "envoy.lb"
SUBSET_NAMESPACE = "envoy.lb.subset_hint"
SUBSET_KEY = f"{DESTINATION_HEADER}-subset"
SERVED_KEY = f"{DESTINATION_HEADER}-served"

_JSON = ("content-type", "application/json")


@dataclass(frozen=True, slots=True)
class PickingTools:
    """What every request's side needs."""

    picker: EndpointPicker
    clock: Callable[[], float]
    on_failure: Callable[[], None]


class PickingSide:
    """The request's side of one call that picks an endpoint. Nothing goes on before the whole request is there."""

    def __init__(self, call: Call, tools: PickingTools, mode: BodyMode | None) -> None:
        if mode not in {None, BodyMode.NONE, BodyMode.FULL_DUPLEX_STREAMED}:
            raise CallRefused(
                Status.FAILED_PRECONDITION, f"request_body_mode must be FULL_DUPLEX_STREAMED or NONE, not {mode.name}"
            )
        self._call = call
        self._tools = tools
        self._has_body = mode is not BodyMode.NONE
        self._headers: dict[str, str] = {}
        self._has_headers = False
        self._subset: tuple[str, ...] | None = None
        self._pieces: list[bytes] = []
        self._body_bytes = 0
        self._has_trailers = False
        self._waiting: asyncio.Future[Verdict] | None = None
        self._is_decided = False
        self._pick: Pick | None = None
        """``None`` = not picked, or not yet."""
        self._is_whole = False
        self._is_closed = False

    @property
    def reads_answers(self) -> bool:
        """Whether the picker sees the answer of the engine that it has picked."""
        return self._pick is not None and self._tools.picker.reads_answers

    def filter_of(self, head: ResponseHead) -> ChosenFilter | None:
        """What the answer of the picked engine passes."""
        return None if self._pick is None else self._tools.picker.filter_of(self._pick, head)

    def headers(self, incoming: Incoming) -> None:
        """The request's headers, which come once: a second pick would leave the first one held."""
        if self._has_headers:
            raise CallRefused(Status.INVALID_ARGUMENT, "request_headers came twice on one call")
        self._has_headers = True
        self._headers = incoming.headers
        self._subset = incoming.listed(SUBSET_NAMESPACE, SUBSET_KEY)
        if incoming.ends or not self._has_body:
            self._has_body = False
            self._decide()

    def body(self, incoming: Incoming) -> None:
        """A piece of the request's body."""
        if self._is_decided:
            return
        self._pieces.append(incoming.body)
        self._body_bytes += len(self._pieces[-1])
        if self._body_bytes > MAX_BODY_BYTES:
            self._pieces.clear()
            self._is_decided = True
            self._refuse(refuse(Reason.BODY_TOO_LARGE, f"The body is larger than {MAX_BODY_BYTES} bytes."))
        elif incoming.ends:
            self._decide()

    def trailers(self, incoming: Incoming) -> None:
        """The request's trailers, after its body."""
        if not self._is_decided:
            self._has_trailers = True
            self._decide()

    def closed(self) -> None:
        """The call is over."""
        self._is_decided = self._is_closed = True
        self._pieces.clear()
        if self._waiting is not None:
            self._waiting.cancel()
        if self._pick is not None:
            self._tools.picker.ended(self._pick, is_whole=self._is_whole)

    def answered(self, incoming: Incoming) -> None:
        """A part of the engine's answer, for the picker to know."""
        pick = self._pick
        if pick is None:
            return
        if incoming.kind == "response_body":
            self._tools.picker.passed(pick, incoming.body)
            self._is_whole = incoming.ends
        elif incoming.kind == "response_headers":
            served = incoming.listed(LB_NAMESPACE, SERVED_KEY)
            status = incoming.headers.get(":status", "")
            number = int(status) if status.isascii() and status.isdigit() else 0
            self._tools.picker.responded(pick, number, served[0] if served else None)
            self._is_whole = incoming.ends
        else:
            self._is_whole = True

    def _decide(self) -> None:
        self._is_decided = True
        body = b"".join(self._pieces)
        self._pieces.clear()
        headers = self._headers
        request = Request(headers.get(":method", ""), headers.get(":path", ""), headers, body)
        try:
            verdict = self._tools.picker.pick(PickRequest(request, self._subset), self._tools.clock())
            if isawaitable(verdict):
                self._waiting = asyncio.ensure_future(verdict)
                self._waiting.add_done_callback(partial(self._decided, body))
            else:
                self._carry_out(verdict, body)
        except Exception:
            self._fail()

    def _decided(self, body: bytes, waited: asyncio.Future[Verdict]) -> None:
        if self._is_closed:
            self._end_unseen(waited)
            return
        try:
            self._carry_out(waited.result(), body)
        except (Exception, asyncio.CancelledError):
            self._fail()

    def _end_unseen(self, waited: asyncio.Future[Verdict]) -> None:
        """The client left before it, or in the moment between the answer and this call's turn to hear it."""
        picked = None if waited.cancelled() or waited.exception() else waited.result()
        if isinstance(picked, Pick):
            self._tools.picker.ended(picked, is_whole=False)

    def _fail(self) -> None:
        self._tools.on_failure()
        message = "The gateway could not decide about this request; it was not passed on."
        self._refuse(refuse(Reason.INTERNAL, message))

    def _carry_out(self, verdict: Verdict, body: bytes) -> None:
        if isinstance(verdict, Reply):
            self._reply(verdict)
            return
        self._pick = verdict
        endpoints = list(filter(Reach(self._subset).holds, verdict.endpoints))
        if not endpoints:
            self._refuse(refuse(Reason.NO_ENDPOINT, "No engine is ready for this request; try again in a moment."))
            return
        changed = apply_edits(body, verdict.edits)  # the proxy sends it chunked: in this mode it states no length
        destination = ",".join(endpoints)
        self._call.send(
            headers_reply(
                "request_headers",
                set_headers=[(DESTINATION_HEADER, destination), *verdict.headers_to_set],
                remove_headers=verdict.headers_to_remove,
                metadata={LB_NAMESPACE: {DESTINATION_HEADER: destination}},
            )
        )
        if self._has_body:
            for reply in streamed_replies("request_body", changed, ends=not self._has_trailers):
                self._call.send(reply)
        if self._has_trailers:
            self._call.send(unchanged_reply("request_trailers"))

    def _refuse(self, refused: Refused) -> None:
        self._reply(refusal_reply(refused, self._headers.get(":path", "")))

    def _reply(self, reply: Reply) -> None:
        self._call.send(immediate_reply(reply.status, reply.headers, reply.body, reply.code))


class PassingSide:
    """A side that nobody asks about: every piece goes on as it came."""

    def __init__(self, call: Call, side: str, mode: BodyMode | None) -> None:
        self._call = call
        self._side = side
        self._is_duplex = mode in {None, BodyMode.FULL_DUPLEX_STREAMED}

    def headers(self, incoming: Incoming) -> None:
        """Headers."""
        self._call.send(unchanged_reply(f"{self._side}_headers"))

    def body(self, incoming: Incoming) -> None:
        """A piece of the body."""
        kind = f"{self._side}_body"
        if not self._is_duplex:
            self._call.send(unchanged_reply(kind))
            return
        for reply in streamed_replies(kind, incoming.body, ends=incoming.ends):
            self._call.send(reply)

    def trailers(self, incoming: Incoming) -> None:
        """Trailers."""
        self._call.send(unchanged_reply(f"{self._side}_trailers"))

    def closed(self) -> None:
        """Nothing is kept."""


def refusal_reply(refused: Refused, target: str) -> Reply:
    """A refusal in the words of the path that was asked."""
    refused = in_form_of(refused, target)
    return Reply(refused.status, refused.body, (_JSON, *refused.headers), refused.reason.value)
