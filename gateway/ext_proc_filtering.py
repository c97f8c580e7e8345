"""The response's side of external processing: sends a body on through the filter that was chosen for it."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.answer_headers import ABOUT_BYTES
from gateway.ext_proc_contract import ChosenFilter, Reply
from gateway.ext_proc_messages import (
    BodyMode,
    Incoming,
    headers_reply,
    immediate_reply,
    replaced_body_reply,
    streamed_replies,
    unchanged_reply,
)
from gateway.http2.grpc_calls import Call
from gateway.http2.grpc_status import Status
from gateway.refusals import Reason, refuse

_REMOVED = ("content-length", *ABOUT_BYTES)
_FAILED = "The answer could not be filtered; nothing of it was passed on."


@dataclass(frozen=True, slots=True)
class FilteringTools:
    """What every response's side needs."""

    clock: Callable[[], float]
    on_failure: Callable[[], None]


class FilteringSide:
    """The response's side of one call with a filter."""

    def __init__(self, call: Call, tools: FilteringTools, chosen: ChosenFilter, mode: BodyMode | None) -> None:
        self._call = call
        self._tools = tools
        self._filter = chosen.filter
        self._fails_open = chosen.fails_open
        self._on_closed = chosen.on_closed
        self._headers_to_set = chosen.headers_to_set
        self._instead = chosen.instead
        self._held_head: bytes | None = None
        """The answer to the headers, where nothing has left yet."""
        self._is_duplex = mode in {None, BodyMode.FULL_DUPLEX_STREAMED}
        self._has_body = mode is not BodyMode.NONE
        self._is_passing = False
        """The filter has failed, and the route says that the rest goes on without it."""
        self._is_done = False
        self._is_answered = False
        """The client has got something else."""

    def headers(self, incoming: Incoming) -> None:
        """The response's headers: the last moment at which the client can be told something else."""
        if not incoming.ends and (
            not self._has_body or incoming.headers.get("content-encoding", "identity") != "identity"
        ):
            self._can_not_start()
            return
        removed = () if incoming.ends else _REMOVED
        head = headers_reply("response_headers", set_headers=self._headers_to_set, remove_headers=removed)
        if incoming.ends or self._instead is None or not self._is_duplex:
            self._call.send(head)
        else:
            self._held_head = head
        if incoming.ends:
            self._end_empty()

    def body(self, incoming: Incoming) -> None:
        """A piece of the response's body."""
        if self._is_done:
            return
        data, ends = incoming.body, incoming.ends
        if self._is_passing:
            self._send(data, ends=ends)
            return
        now = self._tools.clock()
        try:
            shown = self._filter.feed(data, now)
            if ends:
                shown += self._filter.close(now)
        except Exception:
            self._fail()
            shown = data
        if not (ends and self._give_instead()):
            self._send(shown, ends=ends or self._has_ended())

    def trailers(self, incoming: Incoming) -> None:
        """The response's trailers, after its body."""
        if self._is_duplex:
            self._send_more(self._filter.close, may_end=False)  # the trailers are the end
        if self._is_answered or self._give_instead():
            return
        self._send_head()
        self._is_done = True
        self._call.send(unchanged_reply("response_trailers"))

    def tick(self) -> None:
        """Send what has been held back for long enough."""
        if self._is_duplex:
            self._send_more(self._filter.flush_due, may_end=True)

    def closed(self) -> None:
        """The call is over."""
        self._is_done = True
        self._on_closed()

    def _send_more(self, more: Callable[[float], bytes], *, may_end: bool) -> None:
        if self._is_passing or self._is_done:
            return
        try:
            data = more(self._tools.clock())
        except Exception:
            self._fail()
            return
        ends = may_end and self._has_ended()
        if data or ends:
            self._send(data, ends=ends)

    def _has_ended(self) -> bool:
        """A proxy that does not take the body as a stream of its own must be given all of it."""
        return self._is_duplex and not self._is_passing and self._filter.has_ended

    def _send(self, data: bytes, *, ends: bool) -> None:
        if self._is_done:
            return
        if data or ends:
            self._send_head()
        self._is_done = ends
        if not self._is_duplex:
            self._call.send(replaced_body_reply("response_body", data))
        elif data or ends:
            for reply in streamed_replies("response_body", data, ends=ends):
                self._call.send(reply)

    def _send_head(self) -> None:
        head, self._held_head = self._held_head, None
        if head is not None:
            self._call.send(head)

    def _give_instead(self) -> bool:
        """Whether the client has got something else than the answer, of which nothing had left."""
        reply = None if self._held_head is None or self._instead is None else self._instead()
        if reply is None:
            return False
        self._answer(reply)
        return True

    def _answer(self, reply: Reply) -> None:
        self._held_head, self._is_done, self._is_answered = None, True, True
        self._call.send(immediate_reply(reply.status, reply.headers, reply.body, reply.code))

    def _end_empty(self) -> None:
        """An answer without a body is over at its headers."""
        self._is_done = True
        try:
            self._filter.close(self._tools.clock())
        except Exception:
            self._tools.on_failure()

    def _can_not_start(self) -> None:
        self._tools.on_failure()
        if self._fails_open:
            self._is_passing = True
            self._call.send(unchanged_reply("response_headers"))
            return
        self._answer(_filter_failed())

    def _fail(self) -> None:
        """The filter raised. What the exception says goes to nobody: it may quote the response."""
        self._tools.on_failure()
        self._is_passing = True
        if self._fails_open:
            return
        if self._held_head is not None:
            self._answer(_filter_failed())
        else:
            self._is_done = True
            self._call.finish(Status.ABORTED, "the filter failed, and its route fails closed")


class RefusingSide:
    """The response's side of a call for which no filter could be chosen: the client gets an error instead."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def headers(self, incoming: Incoming) -> None:
        """The response's headers."""
        reply = _filter_failed()
        self._call.send(immediate_reply(reply.status, reply.headers, reply.body, reply.code))

    def body(self, incoming: Incoming) -> None:
        """Nothing of it is passed on."""

    def trailers(self, incoming: Incoming) -> None:
        """Nothing of them is passed on."""

    def closed(self) -> None:
        """Nothing is kept."""


def _filter_failed() -> Reply:
    refused = refuse(Reason.FILTER_UNAVAILABLE, _FAILED)
    return Reply(refused.status, refused.body, (("content-type", "application/json"),), refused.reason.value)
