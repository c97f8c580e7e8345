"""gRPC calls: what code that answers them gets and gives, for calls of one message and of many both ways."""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from gateway.http2.errors import ErrorCode
from gateway.http2.grpc_messages import MessageFault, MessageReader, prefixed
from gateway.http2.grpc_status import HEAD, Status, status_fields
from gateway.http2.header_blocks import Headers
from gateway.http2.streams import Stream


class Call(Protocol):
    """One call, as its handler sees it."""

    @property
    def metadata(self) -> Headers:
        """The fields that opened it."""

    @property
    def is_blocked(self) -> bool:
        """The peer takes less than is sent; ``writable`` comes when it has taken all."""

    def send(self, message: bytes) -> None:
        """Send a message; one too many for a peer that takes none ends the call."""

    def finish(self, status: Status = Status.OK, message: str = "") -> None:
        """End the call, after what was sent."""

    def pause(self) -> None:
        """Have no more messages for now: the peer may then send only as much as the window holds."""

    def resume(self) -> None:
        """Have messages again."""


class CallHandler(Protocol):
    """Answers one call. Nothing in it may wait; what raises ends the call as an internal error."""

    def message(self, data: bytes) -> None:
        """The peer's next message."""

    def half_closed(self) -> None:
        """The peer has sent its last message."""

    def writable(self) -> None:
        """What was sent has been taken."""

    def closed(self) -> None:
        """The call is over, whoever ended it; said once."""


Method = Callable[[Call], CallHandler]
"""Makes the handler of a new call."""


class CallRefused(Exception):
    """Raised by a handler: the call ends with this status."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Timer(Protocol):
    """Something that will happen."""

    def cancel(self) -> None:
        """Have it not happen."""


class GrpcCall:
    """A call on a stream."""

    __slots__ = (
        "_deadline",
        "_handler",
        "_has_head",
        "_incoming",
        "_is_ended",
        "_is_open",
        "_is_paused",
        "_is_running",
        "_messages",
        "_on_failure",
        "_reader",
        "_stream",
        "metadata",
    )

    def __init__(
        self, stream: Stream, metadata: Headers, max_message_bytes: int, on_failure: Callable[[], None]
    ) -> None:
        self.metadata = metadata
        self._stream = stream
        self._on_failure = on_failure
        self._reader = MessageReader(max_message_bytes)
        self._handler: CallHandler | None = None
        self._deadline: Timer | None = None
        self._incoming: deque[bytes] = deque()
        self._messages: deque[bytes] = deque()
        self._has_head = False
        self._is_ended = False
        self._is_open = True
        self._is_paused = False
        self._is_running = False

    def start(self, method: Method, deadline: Timer | None = None) -> None:
        """Make the handler."""
        self._deadline = deadline
        try:
            self._handler = method(self)
        except CallRefused as refused:
            self.finish(refused.status, refused.message)
        except Exception:
            self._fail()

    # what the handler does

    @property
    def is_blocked(self) -> bool:
        """The peer takes less than is sent."""
        return self._stream.unsent_bytes > 0

    def send(self, message: bytes) -> None:
        """Send a message."""
        if not self._has_head:
            self._has_head = True
            self._stream.send_headers(HEAD)
        self._stream.send_data(prefixed(message))

    def finish(self, status: Status = Status.OK, message: str = "") -> None:
        """End the call."""
        if self._has_head:
            self._stream.send_trailers(status_fields(status, message))
        else:
            self._stream.send_headers(HEAD + status_fields(status, message), ends=True)

    def pause(self) -> None:
        """Have no more messages for now."""
        self._is_paused = True

    def resume(self) -> None:
        """Have messages again."""
        self._is_paused = False
        self._run()

    def expire(self) -> None:
        """The peer's deadline has passed; it waits no more, so nothing that is kept back matters."""
        if self._stream.unsent_bytes:
            self._stream.reset(ErrorCode.CANCEL)
        else:
            self.finish(Status.DEADLINE_EXCEEDED, "the deadline has passed")

    # what the stream does

    def data(self, data: bytes) -> None:
        """Bytes have come in."""
        self._incoming.append(data)
        self._run()

    def ended(self) -> None:
        """The peer sends no more."""
        self._is_ended = True
        self._run()

    def writable(self) -> None:
        """What was kept back has been sent."""
        if self._handler is not None:
            self._guarded(self._handler.writable)

    def closed(self) -> None:
        """The stream is over."""
        self._is_open = False
        self._incoming.clear()
        self._messages.clear()
        if self._deadline is not None:
            self._deadline.cancel()
        handler, self._handler = self._handler, None
        if handler is not None:
            self._guarded(handler.closed)

    def _run(self) -> None:
        """Hand on what there is, message by message, for as long as the handler takes them."""
        if self._is_running:
            return
        self._is_running = True
        self._guarded(self._run_guarded)
        self._is_running = False

    def _run_guarded(self) -> None:
        while self._is_open and not self._is_paused and self._handler is not None:
            if self._messages:
                self._handler.message(self._messages.popleft())
            elif self._incoming:
                data = self._incoming.popleft()
                self._stream.consume(len(data))
                self._messages.extend(self._reader.feed(data))
            else:
                if self._is_ended:
                    self._is_ended = False
                    self._half_close(self._handler)
                return

    def _half_close(self, handler: CallHandler) -> None:
        if self._reader.is_within:
            raise MessageFault(Status.INTERNAL, "the call ends within a message")
        handler.half_closed()

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except MessageFault as fault:
            self.finish(fault.status, fault.reason)
        except CallRefused as refused:
            self.finish(refused.status, refused.message)
        except Exception:
            self._fail()

    def _fail(self) -> None:
        """The handler raised. What the exception says goes to nobody: it may quote a request."""
        self._on_failure()
        self.finish(Status.INTERNAL, "the handler failed")


def unary(answer: Callable[[bytes], bytes]) -> Method:
    """The method that answers one message with one; the function may raise :class:`CallRefused`."""
    return lambda call: _Unary(call, answer)


class _Unary:
    """Waits for the one message."""

    def __init__(self, call: Call, answer: Callable[[bytes], bytes]) -> None:
        self._call = call
        self._answer = answer
        self._message: bytes | None = None

    def message(self, data: bytes) -> None:
        if self._message is not None:
            raise CallRefused(Status.INTERNAL, "this method takes one message")
        self._message = data

    def half_closed(self) -> None:
        if self._message is None:
            raise CallRefused(Status.INTERNAL, "this method takes one message, none came")
        self._call.send(self._answer(self._message))
        self._call.finish()

    def writable(self) -> None:
        """Nothing waits for it."""

    def closed(self) -> None:
        """Nothing is kept."""
