"""A gRPC server: names of methods to what answers them."""

import asyncio
from collections.abc import Callable, Mapping

from gateway.http2.errors import ErrorCode
from gateway.http2.grpc_calls import GrpcCall, Method, Timer
from gateway.http2.grpc_status import CONTENT_TYPE, HEAD, Status, status_fields, timeout_seconds
from gateway.http2.header_blocks import Headers, status_line
from gateway.http2.limits import Limits
from gateway.http2.protocol import Http2Server
from gateway.http2.streams import Stream, StreamUser

CallLater = Callable[[float, Callable[[], None]], Timer]


def grpc_server(
    methods: Mapping[str, Method],
    *,
    clock: Callable[[], float],
    on_failure: Callable[[], None],
    limits: Limits | None = None,
) -> Http2Server:
    """A server on the running event loop; ``on_failure`` is called where an exception can be had from ``sys``."""
    used = limits or Limits()
    dispatcher = Dispatcher(methods, used, on_failure, asyncio.get_running_loop().call_later)
    return Http2Server(dispatcher.open, clock, used)


class Dispatcher:
    """Makes a call of each new stream, or refuses it."""

    def __init__(
        self, methods: Mapping[str, Method], limits: Limits, on_failure: Callable[[], None], call_later: CallLater
    ) -> None:
        self._methods = {name.encode(): method for name, method in methods.items()}
        """By ``/package.Service/Method``."""
        self._max_message_bytes = limits.max_message_bytes
        self._on_failure = on_failure
        self._call_later = call_later

    def open(self, stream: Stream, headers: Headers) -> StreamUser:
        """Start the call that a stream is for."""
        fields = dict(headers)
        if fields.get(b":method") != b"POST" or not fields.get(b"content-type", b"").startswith(CONTENT_TYPE):
            stream.send_headers(status_line(415), ends=True)
            return _Unheard(stream)
        method = self._methods.get(fields[b":path"])
        if method is None:
            stream.send_headers(HEAD + status_fields(Status.UNIMPLEMENTED, "there is no such method"), ends=True)
            return _Unheard(stream)
        call = GrpcCall(stream, headers, self._max_message_bytes, self._on_failure)
        timeout = fields.get(b"grpc-timeout")
        if timeout is None:
            call.start(method)
        elif (seconds := timeout_seconds(timeout)) is None:
            call.finish(Status.INVALID_ARGUMENT, "the field grpc-timeout can't be read")
        else:
            call.start(method, self._call_later(seconds, call.expire))
        return call


class _Unheard:
    """Takes what comes on a stream that is answered already."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def data(self, data: bytes) -> None:
        self._stream.reset(ErrorCode.NO_ERROR)

    def ended(self) -> None:
        """As it should."""

    def writable(self) -> None:
        """Nothing waits for it."""

    def closed(self) -> None:
        """Nothing is kept."""
