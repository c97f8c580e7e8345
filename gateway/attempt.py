"""One engine's answer to one request."""

import asyncio
from collections.abc import Callable
from enum import Enum, auto

from gateway.engine_connections import EngineConnection
from gateway.exchange import OF_A_CONNECTION, Headers
from gateway.ext_authz import ENDPOINT_HEADER, SERVED_MODEL_HEADER, header_name
from gateway.outlet import Outlet
from gateway.passage import End
from gateway.silence import Silence
from gateway.targets import Target, pause_of

_STREAM = "text/event-stream"
_ABOUT_THE_BODY = frozenset({"content-type", "content-encoding", "cache-control"})
MAX_WHOLE_BYTES = 8 * 1024 * 1024
"""Of an answer that is no stream: a longer one, such as many embeddings, is passed on piece by piece."""


class Tried(Enum):
    """What came of asking an engine."""

    BEGUN = auto()
    """Its answer is on its way to the client: no other engine can be asked."""
    AWAY = auto()
    """It can't be reached, or takes nothing now."""
    LOST = auto()
    BUSY = auto()
    LATE = auto()


class Attempt:
    """Reads an engine's answer: a stream goes to the client at once, a whole answer when it is whole.

    Nothing goes to the client before the first byte of the body, so that until then another engine can be asked.
    """

    def __init__(
        self,
        connection: EngineConnection,
        outlet: Outlet,
        silence: Silence,
        *,
        model: str,
        idle_seconds: float,
        has_others: bool,
        on_over: Callable[[], None],
    ) -> None:
        """``on_over`` is told in the turn in which it ends, if it does."""
        loop = asyncio.get_running_loop()
        self.tried: asyncio.Future[Tried] = loop.create_future()
        self.ended: asyncio.Future[End] = loop.create_future()
        self.status = 0
        self.pause_seconds = 0.0
        """What a host asks for before it is asked again."""
        self._model = model
        self._connection = connection
        self._outlet = outlet
        self._silence = silence
        self._idle_seconds = idle_seconds
        self._patience: Silence | None = None
        self._is_held_back = False
        self._has_others = has_others
        self._on_over = on_over
        self._headers: Headers = ()
        self._is_stream = False
        self._whole = bytearray()
        outlet.on_stopped = lambda: self.give_up(End.FILTERED)

    @property
    def is_over(self) -> bool:
        """Whether it has begun to answer, and ended."""
        is_begun = self.tried.done() and self.tried.result() is Tried.BEGUN
        return is_begun and self.ended.done() and not self.ended.cancelled()

    def on_head(self, status: int, headers: Headers) -> None:
        """The engine answers."""
        self.status = status
        target = self._connection.target
        kept = [header for header in headers if _is_for_clients(header[0], target)]
        served = (SERVED_MODEL_HEADER, header_name(self._model))
        self._headers = (*kept, (ENDPOINT_HEADER, target.name), served)
        types = [value for name, value in headers if name == "content-type"]
        self._is_stream = status == 200 and any(value.lower().startswith(_STREAM) for value in types)
        if status in target.passed_over and (self._has_others or target.is_hosted):
            self.pause_seconds = pause_of(status, headers)
            self._connection.cut()
            self._settle(Tried.BUSY)

    def on_piece(self, data: bytes) -> None:
        """A piece of it."""
        self._silence.heard()
        if self._patience is not None:
            self._patience.heard()
        if not self.tried.done():
            self._settle(Tried.BEGUN)
            self._patience = Silence(self._idle_seconds, self._lose_patience)
        if not self._is_stream:
            self._whole += data
            if len(self._whole) <= MAX_WHOLE_BYTES:
                return
            data, self._whole, self._is_stream = bytes(self._whole), bytearray(), True
        self._outlet.begin(self.status, self._headers)
        self._outlet.write(data)

    def on_end(self) -> None:
        """It is whole."""
        self._settle(Tried.BEGUN)
        if self._is_stream:
            self._outlet.begin(self.status, self._headers)
            self._outlet.end()
        else:
            self._outlet.answer(self.status, self._headers, bytes(self._whole))
        self._finish(End.WHOLE)

    def on_lost(self) -> None:
        """The engine broke off."""
        self._settle(Tried.LOST)
        self._finish(End.ENGINE_LOST)

    def flow(self, goes: bool) -> None:
        """Read on, or let the engine wait: whoever is made to wait is not late."""
        self._is_held_back = not goes
        self._connection.flow(goes)
        if self._patience is not None:
            self._patience.heard()

    def give_up(self, end: End) -> None:
        """Ask no more of this engine, which sees that its client is gone."""
        if not self.ended.done():  # else the connection may serve another request already
            self._connection.cut()
        self._settle(Tried.LATE if end is End.ENGINE_LATE else Tried.LOST)
        self._finish(end)

    def _lose_patience(self) -> None:
        if not self._is_held_back:
            self.give_up(End.ENGINE_LATE)

    def _settle(self, tried: Tried) -> None:
        if not self.tried.done():
            self.tried.set_result(tried)

    def _finish(self, end: End) -> None:
        if self._patience is not None:
            self._patience.stop()
        if not self.ended.done():
            self.ended.set_result(end)
            self._on_over()


def _is_for_clients(name: str, target: Target) -> bool:
    """Of a host's headers only what says how to read the body: the others are between the host and us."""
    if target.is_hosted:
        return name in _ABOUT_THE_BODY
    return name not in OF_A_CONNECTION and name not in {ENDPOINT_HEADER, SERVED_MODEL_HEADER}
