"""One request on its way through the guard: its turn, the engines in their order, the stream, and how it ended."""

import asyncio

import structlog

from gateway.attempt import Attempt, Tried
from gateway.engine_connections import EngineConnections
from gateway.error_places import kind_and_place
from gateway.exchange import OF_A_CONNECTION, Exchange
from gateway.http_protocol import HttpRequest
from gateway.outlet import Outlet
from gateway.passage import End, Ending, Passage
from gateway.refusals import Reason, Refused
from gateway.silence import Silence

_log = structlog.get_logger("gateway.relay")
_OWN_PREFIX = "x-gateway-"
_NOT_FOR_ENGINES = OF_A_CONNECTION | {"te", "host", "expect"}
_LOST = "The engine broke off while it answered."
_LATE = "The engine sent nothing for too long."
_FAILED = "The gateway failed while it passed the answer on."
_NONE = "No engine could be reached for this request."


class Relay:
    """Passes one request to an engine and its answer to the client."""

    def __init__(
        self,
        request: HttpRequest,
        exchange: Exchange,
        passage: Passage,
        engines: EngineConnections,
        keep_alive_seconds: float,
    ) -> None:
        self._request = request
        self._exchange = exchange
        self._passage = passage
        self._engines = engines
        self._keep_alive_seconds = keep_alive_seconds
        path = request.target.partition("?")[0]
        self._outlet = Outlet(exchange, path, is_usage_injected=passage.is_usage_injected)
        self._attempt: Attempt | None = None
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """From the turn to the last byte; however it ends, the passage is told once."""
        self._task = asyncio.current_task()
        silence = Silence(self._keep_alive_seconds, self._keep_alive)
        end = End.CLIENT_LEFT
        try:
            end = await self._pass_on(silence)
        except asyncio.CancelledError:
            if self._outlet.is_open:  # the gateway ends, not the client
                self._exchange.cut()
                raise
        except Exception:
            _log.error("relay.failed", **kind_and_place())
            end = End.FAILED
            self._give_up()
        finally:
            silence.stop()
            status = self._attempt.status if self._attempt else 0
            self._passage.end(Ending(end, status, self._outlet.usage, self._outlet.events))

    def client_left(self) -> None:
        """Nobody reads any more: let the engine see it at once."""
        if self._attempt is not None:
            self._attempt.give_up(End.CLIENT_LEFT)
        if self._task is not None:
            self._task.cancel()

    def _keep_alive(self) -> None:
        if self._passage.is_stream:
            self._outlet.keep_alive()

    def _give_up(self) -> None:
        """After a failure of our own: the engine sees that nobody reads, and the client an error."""
        if self._attempt is not None:
            self._attempt.give_up(End.FAILED)
        if self._outlet.is_open:
            self._outlet.fail(500, Reason.INTERNAL, _FAILED)

    async def _pass_on(self, silence: Silence) -> End:
        turn = await self._passage.turn()
        if isinstance(turn, Refused):
            self._outlet.refuse(turn)
            return End.REFUSED
        body = self._passage.edited(self._request.body)
        for number, address in enumerate(turn, start=1):
            attempt = await self._ask(address, body, silence, has_others=number < len(turn))
            if attempt is not None:
                return await self._follow(attempt)
        if self._attempt is not None:
            self._outlet.fail(502, Reason.ENGINE_LOST, _LOST)
            return End.ENGINE_LOST
        self._outlet.fail(503, Reason.NO_ENDPOINT, _NONE)
        return End.NO_ENGINE

    async def _ask(self, address: str, body: bytes, silence: Silence, *, has_others: bool) -> Attempt | None:
        """One engine's answer, begun or too late; ``None`` = it can't be had there, and another may be asked."""
        try:
            connection = await self._engines.get(address)
        except OSError:
            return None
        idle_seconds = self._passage.idle_seconds
        attempt = Attempt(connection, self._outlet, silence, idle_seconds=idle_seconds, has_others=has_others)
        self._attempt = attempt
        self._passage.sent_to(address)
        connection.send(_message(self._request, address, body), attempt)
        self._exchange.on_flow = connection.flow
        try:
            async with asyncio.timeout(self._passage.first_byte_seconds):
                tried = await asyncio.shield(attempt.tried)
        except TimeoutError:
            attempt.give_up(End.ENGINE_LATE)
            return attempt
        if tried is not Tried.BEGUN:
            return None
        self._passage.began()
        return attempt

    async def _follow(self, attempt: Attempt) -> End:
        """To the end of an answer that has begun."""
        end = await attempt.ended
        if end is End.ENGINE_LOST:
            self._outlet.fail(502, Reason.ENGINE_LOST, _LOST)
        elif end is End.ENGINE_LATE:
            self._outlet.fail(504, Reason.ENGINE_LATE, _LATE)
        return end


def _message(request: HttpRequest, address: str, body: bytes) -> bytes:
    """The request as an engine gets it."""
    lines = [f"{request.method} {request.target} HTTP/1.1", f"host: {address}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in request.headers.items() if _is_for_engines(name)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def _is_for_engines(name: str) -> bool:
    return name not in _NOT_FOR_ENGINES and not name.startswith(_OWN_PREFIX)
