"""What a client gets of its stream: the engine's bytes, comments while there are none, an error if they break off."""

import json
from collections.abc import Callable, Mapping

from gateway.error_forms import error_answer, in_form_of
from gateway.exchange import Exchange, Headers, HttpResponse
from gateway.guard_words import KEEP_ALIVE, STREAM_HEADERS, error_event
from gateway.refusals import Reason, Refused
from gateway.stream_usage import StreamUsage
from gateway.token_usage import TokenUsage, usage_of

_JSON = ("content-type", "application/json")


class Outlet:
    """The client's side of one request."""

    def __init__(self, exchange: Exchange, path: str, *, is_usage_injected: bool) -> None:
        self._exchange = exchange
        self._path = path
        self._stream = StreamUsage(is_injected=is_usage_injected)
        self._whole_usage: TokenUsage | None = None
        self.on_stopped: Callable[[], None] = _nobody
        """Told when the answer has ended before the engine ended it."""

    @property
    def is_open(self) -> bool:
        """Whether the client can still be told something."""
        return not self._exchange.is_over

    @property
    def is_begun(self) -> bool:
        """Whether it has a status already, so that an error has to come as an event."""
        return self._exchange.is_begun

    @property
    def usage(self) -> TokenUsage | None:
        """What the answer said about its tokens so far."""
        return self._whole_usage or self._stream.usage

    @property
    def events(self) -> int:
        """Events with output that passed."""
        return self._stream.events

    def flow_to(self, engine: Callable[[bool], None]) -> Callable[[bool], None]:
        """Whom the client tells whether the engine may go on."""
        return engine

    def begin(self, status: int, headers: Headers) -> None:
        """The engine's status and headers, unless a comment went before."""
        if not self._exchange.is_begun:
            self._exchange.begin(status, headers)

    def write(self, data: bytes) -> None:
        """Bytes of the engine's."""
        self._exchange.write(self._stream.feed(data))

    def keep_alive(self) -> None:
        """A comment, where one can stand."""
        if self.is_open and self._is_between_events:
            if not self._exchange.is_begun:
                self._exchange.begin(200, STREAM_HEADERS)
            self._exchange.write(KEEP_ALIVE)

    def end(self) -> None:
        """The stream is whole."""
        self._exchange.write(self._stream.finish())
        self._exchange.end()

    async def over(self) -> None:
        """Returns when the client has got all that it gets of an answer that the engine ended."""

    def close(self) -> None:
        """The request is over; whoever was told of its end is let go, since he holds this one."""
        self.on_stopped = _nobody

    def fail(self, status: int, code: Reason, message: str) -> None:
        """Say what went wrong as the answer, or as the last event of a stream that has begun."""
        self._say(status, code.value, message, (), error_answer(self._path, status, message, code=code.value))

    def refuse(self, refused: Refused) -> None:
        """Say a refusal."""
        self._say(
            refused.status, refused.reason.value, refused.message, refused.headers, in_form_of(refused, self._path).body
        )

    def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """The engine's whole answer, which is no stream."""
        self._read_usage(status, body)
        self._give(status, headers, body)

    @property
    def _is_between_events(self) -> bool:
        """Whether what the client has ends with a whole event."""
        return self._stream.is_between_events

    def _read_usage(self, status: int, body: bytes) -> None:
        if status < 400 and not self._exchange.is_begun:
            self._whole_usage = usage_of(_document(body).get("usage"))

    def _give(self, status: int, headers: Headers, body: bytes) -> None:
        if not self._exchange.is_begun:
            self._exchange.answer(HttpResponse(status, headers, body))
            return
        self._exchange.write(error_event(self._path, status, "engine_error", _reason_in(_document(body), status)))
        self._exchange.end()

    def _say(self, status: int, code: str, message: str, headers: Headers, body: bytes) -> None:
        if not self._exchange.is_begun:
            self._exchange.answer(HttpResponse(status, (_JSON, *headers), body))
            return
        unfinished = b"" if self._is_between_events else b"\n\n"
        self._exchange.write(unfinished + error_event(self._path, status, code, message))
        self._exchange.end()


def _document(body: bytes) -> Mapping[str, object]:
    """The object that a body is; an empty one where it is none."""
    try:
        stated = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return stated if isinstance(stated, dict) else {}


def _reason_in(document: Mapping[str, object], status: int) -> str:
    """The message of an engine's error, as far as it can be read."""
    error = document.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else f"The engine answered {status}."


def _nobody() -> None:
    """Nobody is told."""
