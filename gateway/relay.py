"""One request on its way through the guard: its turn, the engines in their order, the stream, and how it ended."""

import asyncio

import structlog

from gateway.attempt import Attempt, Tried
from gateway.engine_connections import EngineConnection, EngineConnections
from gateway.engine_message import message_for
from gateway.error_places import kind_and_place
from gateway.exchange import Exchange
from gateway.filtered_outlet import outlet_of
from gateway.hosted_keys import HostedKeyError
from gateway.http_protocol import HttpRequest
from gateway.passage import End, Ending, Passage
from gateway.refusals import Reason, Refused
from gateway.shadows import Shadows
from gateway.silence import Silence

_log = structlog.get_logger("gateway.relay")
_ENGINE_ERROR = 500
NO_KEY_SECONDS = 5.0
"""A hosted engine whose key can't be read is left alone for so long."""
_LOST = "The engine broke off while it answered."
_LATE = "The engine sent nothing for too long."
_FAILED = "The gateway failed while it passed the answer on."
_STOPPING = "The gateway is stopping and could not wait for the end of this answer; ask again."
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
        shadows: Shadows | None = None,
    ) -> None:
        self._request = request
        self._exchange = exchange
        self._passage = passage
        self._engines = engines
        self._keep_alive_seconds = keep_alive_seconds
        self._shadows = shadows
        path = request.target.partition("?")[0]
        self._outlet = outlet_of(exchange, path, passage)
        exchange.on_over = self._look
        self._attempt: Attempt | None = None
        self._unheard = ""
        """The engine that was asked last and has not begun."""
        self._task: asyncio.Task[None] | None = None
        self._is_ended = False
        self._own_end: End | None = None
        """Where the gateway ends the answer itself, whatever the engine did."""

    async def run(self) -> None:
        """From the turn to the last byte; however it ends, the passage is told once, in the turn of the last byte."""
        self._task = asyncio.current_task()
        silence = Silence(self._keep_alive_seconds, self._keep_alive)
        end = End.FAILED
        try:
            end = await self._pass_on(silence)
        except asyncio.CancelledError:
            end = self._own_end = self._own_end or End.CLIENT_LEFT
            if self._outlet.is_open:  # the gateway ends, not the client
                self._exchange.cut()
                raise
        except Exception:
            _log.error("relay.failed", **kind_and_place())
            self._break_off(500, _FAILED)
        finally:
            silence.stop()
            self._outlet.close()
            self._end(end)
            self._attempt = None

    def client_left(self) -> None:
        """Nobody reads any more: let the engine see it at once."""
        if self._task is None:  # it runs from the next turn of the loop on, and has to, so that somebody is told
            asyncio.get_running_loop().call_soon(self.client_left)
            return
        if self._attempt is not None:
            self._attempt.give_up(End.CLIENT_LEFT)
        self._task.cancel()

    def stop(self) -> None:
        """The gateway ends before the answer does."""
        if self._task is None:
            asyncio.get_running_loop().call_soon(self.stop)
            return
        try:
            self._break_off(503, _STOPPING)
        finally:
            self._task.cancel()

    def _look(self) -> None:
        """End in the turn in which the last byte was written: whoever has it may ask again before the next one."""
        attempt = self._attempt
        if attempt is not None and attempt.is_over and not self._outlet.is_open:
            try:
                self._tell(Tried.BEGUN, attempt)
            finally:
                self._end(self._own_end or attempt.ended.result())

    def _end(self, end: End) -> None:
        if self._is_ended:
            return
        self._is_ended = True
        status = self._attempt.status if self._attempt else 0
        self._passage.end(Ending(end, status, self._outlet.usage, self._outlet.events))

    def _keep_alive(self) -> None:
        if self._passage.is_stream:
            self._outlet.keep_alive()

    def _break_off(self, status: int, message: str) -> None:
        """The gateway ends the answer itself: the engine sees that nobody reads, and the client is told."""
        self._own_end = End.FAILED
        if self._attempt is not None:
            self._attempt.give_up(End.FAILED)
        if self._outlet.is_open:
            self._outlet.fail(status, Reason.INTERNAL, message)
        if not self._outlet.is_open:
            self._end(End.FAILED)

    async def _pass_on(self, silence: Silence) -> End:
        """Turn by turn, until an engine begins or nobody is left: every arm and model has engines of its own."""
        while True:
            turn = await self._passage.turn()
            if isinstance(turn, Refused):
                if turn.reason is Reason.NO_ENDPOINT and self._passage.fall_back():
                    continue  # its engines went away while it waited for them
                self._outlet.refuse(turn)
                return End.REFUSED
            self._send_copy()
            tried = await self._ask_all(turn, silence)
            if tried is Tried.BEGUN and self._attempt is not None:
                return await self._follow(self._attempt)
            if not self._passage.fall_back():
                return self._nobody(tried)

    def _send_copy(self) -> None:
        """To the shadow, once; it goes its own way from here."""
        shadows, self._shadows = self._shadows, None
        mirror = self._passage.mirror
        if shadows is not None and mirror is not None:
            shadows.send(mirror, self._request)

    async def _ask_all(self, turn: tuple[str, ...], silence: Silence) -> Tried:
        """The engines of one turn, until one begins; what came of the last that was reached."""
        body = self._passage.edited(self._request.body)
        last = Tried.AWAY
        for number, address in enumerate(turn, start=1):
            tried = await self._ask(address, body, silence, has_others=number < len(turn))
            if tried is Tried.BEGUN or tried is Tried.LATE:  # the others were a worse choice than one that is late
                return tried
            last = last if tried is Tried.AWAY else tried
        return last

    async def _ask(
        self, address: str, body: bytes, silence: Silence, *, has_others: bool, is_again: bool = False
    ) -> Tried:
        """What came of asking one engine."""
        passage = self._passage
        if not is_again and not passage.may_ask(address):
            return Tried.AWAY
        target = passage.target(address)
        try:
            message = message_for(target, self._request, body, self._engines.key(target))
            connection = await self._engines.get(target, is_new=is_again)
        except (OSError, HostedKeyError) as error:
            self._engine_failed(address, NO_KEY_SECONDS if isinstance(error, HostedKeyError) else 0.0)
            if isinstance(error, HostedKeyError):
                _log.error("relay.no_key", engine=target.name, error=str(error))
            return Tried.AWAY
        was_idle = not connection.is_new
        attempt = self._attempt_over(connection, silence, has_others=has_others)
        passage.sent_to(address)
        self._unheard = address
        connection.send(message, attempt)
        self._exchange.on_flow = self._outlet.flow_to(attempt.flow)
        try:
            async with asyncio.timeout(passage.patience.first_byte_seconds):
                await asyncio.shield(attempt.tried)
        except TimeoutError:
            if not attempt.tried.done():  # its first byte may have come in the turn in which its time was up
                attempt.give_up(End.ENGINE_LATE)
        tried = attempt.tried.result()
        if tried is Tried.LOST and was_idle and not attempt.status:  # it was closed while the request was on its way
            return await self._ask(address, body, silence, has_others=has_others, is_again=True)
        self._tell(tried, attempt)
        return tried

    def _attempt_over(self, connection: EngineConnection, silence: Silence, *, has_others: bool) -> Attempt:
        passage = self._passage
        self._attempt = Attempt(
            connection,
            self._outlet,
            silence,
            model=passage.model,
            idle_seconds=passage.patience.idle_seconds,
            has_others=has_others or passage.may_fall_back,
            on_over=self._look,
        )
        return self._attempt

    def _tell(self, tried: Tried, attempt: Attempt) -> None:
        """How the engine did, for those that choose among engines; said once."""
        address, self._unheard = self._unheard, ""
        if not address:
            return
        if tried is Tried.BEGUN:
            self._passage.began()
        if tried is Tried.BEGUN and attempt.status < _ENGINE_ERROR:
            self._passage.went_well(address)
        else:
            self._engine_failed(address, attempt.pause_seconds)

    def _engine_failed(self, address: str, pause_seconds: float) -> None:
        if self._passage.failed(address, pause_seconds):
            _log.warning("relay.engine_ejected", engine=address)

    def _nobody(self, tried: Tried) -> End:
        """Every engine that may be asked was asked."""
        if tried is Tried.LATE:
            self._own_end = End.ENGINE_LATE
            self._outlet.fail(504, Reason.ENGINE_LATE, _LATE)
            return End.ENGINE_LATE
        if tried is Tried.LOST:
            self._outlet.fail(502, Reason.ENGINE_LOST, _LOST)
            return End.ENGINE_LOST
        self._outlet.fail(503, Reason.NO_ENDPOINT, _NONE)
        return End.NO_ENGINE if self._attempt is None else End.ENGINE_LOST

    async def _follow(self, attempt: Attempt) -> End:
        """To the end of an answer that has begun."""
        end = await attempt.ended
        if end is End.WHOLE:
            await self._outlet.over()
        elif end is End.ENGINE_LOST:
            self._outlet.fail(502, Reason.ENGINE_LOST, _LOST)
        elif end is End.ENGINE_LATE:
            self._outlet.fail(504, Reason.ENGINE_LATE, _LATE)
        return end
