"""A client and an engine that talk over WebSockets: their messages are passed on, counted, and bounded in time."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from urllib.parse import quote

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import CloseCode

from gateway.admitted import Admitted
from gateway.error_places import kind_and_place
from gateway.exhausted import Exhausted
from gateway.passage import End, Ending
from gateway.paths import REALTIME_PATH
from gateway.realtime_meter import ASKS, RealtimeMeter
from gateway.refusals import Reason, Refused, error_type
from gateway.request_document import BadDocument, parse_document
from gateway.socket_settings import SocketSettings
from gateway.websocket_log import silent

MAX_ENGINE_MESSAGE_BYTES = 16 * 1024 * 1024
CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 1.0
LOOK_SECONDS = 0.2
"""Between two looks at the time, and at whether the engine is drained."""
_SWITCHED = 101
_log = structlog.get_logger("gateway.realtime_session")


class RealtimeSession:
    """One session; it stays with the engine that it was opened at."""

    def __init__(self, connection: ServerConnection, admitted: Admitted, settings: SocketSettings) -> None:
        self._client = connection
        self._admitted = admitted
        self._settings = settings
        self._meter = RealtimeMeter(admitted.session())
        self._engine: ClientConnection | None = None
        self._is_stopping = False
        self._revoked = ""
        self._heard = 0.0
        self._end = End.CLIENT_LEFT
        self.address = ""
        """The engine; empty = none has it yet."""

    async def run(self) -> None:
        """Until one of the three closes it; whatever happens, nothing is held afterwards."""
        status = 0
        try:
            async with AsyncExitStack() as stack:
                engine = self._engine = await self._open(stack)
                if engine is not None:
                    status = _SWITCHED
                    await self._talk(engine)
        except Exception:
            _log.error("realtime_session.failed", **kind_and_place())
            self._end = End.FAILED
            await self._client.close(CloseCode.INTERNAL_ERROR, "the gateway failed")
        finally:
            self._meter.close(self._end)
            self._admitted.end(Ending(self._end, status, None))
        if self._end is End.REVOKED:
            await self._client.close(CloseCode.POLICY_VIOLATION, self._revoked)

    def stop(self) -> None:
        """Take no new answer, and close after the one that runs."""
        self._is_stopping = True

    def revoke(self, reason: str) -> None:
        """Leave the engine now, whatever it says, and close for this reason."""
        self._revoked = reason

    async def _open(self, stack: AsyncExitStack) -> ClientConnection | None:
        """The engine, when it is this session's turn; ``None`` = the client was told why there is none."""
        self._end = End.NO_ENGINE
        turn = await self._admitted.turn()
        if isinstance(turn, Refused):
            self._end = End.REFUSED
            await self._tell(turn.status, turn.reason, turn.message)
            await self._client.close(CloseCode.TRY_AGAIN_LATER, "no engine was free")
            return None
        for address in turn:
            if not self._admitted.may_ask(address):
                continue
            try:
                engine = await stack.enter_async_context(self._connection_to(address))
            except (OSError, WebSocketException):
                self._admitted.failed(address)
                continue
            self._admitted.sent_to(address)
            self._admitted.began()
            self._admitted.went_well(address)
            self.address, self._end = address, End.CLIENT_LEFT
            return engine
        await self._tell(503, Reason.NO_ENDPOINT, "No engine could be reached for this session.")
        await self._client.close(CloseCode.TRY_AGAIN_LATER, "no engine could be reached")
        return None

    def _connection_to(self, address: str) -> connect:
        target = self._admitted.target(address)
        return connect(
            f"ws://{target.authority}{REALTIME_PATH}?model={quote(self._admitted.model, safe='')}",
            host=target.host,  # a redirect to elsewhere is none
            port=target.port,
            proxy=None,
            compression=None,
            user_agent_header=None,
            open_timeout=CONNECT_SECONDS,
            close_timeout=CLOSE_SECONDS,
            max_size=MAX_ENGINE_MESSAGE_BYTES,
            max_queue=4,
            logger=silent(),
        )

    async def _talk(self, engine: ClientConnection) -> None:
        """Both ways at once, until one of them ends."""
        self._heard = asyncio.get_running_loop().time()
        ways = [asyncio.create_task(way) for way in (self._up(engine), self._down(engine), self._watch())]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        for way in done:
            way.result()

    async def _up(self, engine: ClientConnection) -> None:
        """What the client says; a message that two readers could read in two ways goes no further."""
        try:
            async for message in self._client:
                self._heard = asyncio.get_running_loop().time()
                if isinstance(message, bytes):
                    await self._client.close(CloseCode.UNSUPPORTED_DATA, "messages are texts")
                    return
                if await self._may_pass(message):
                    await engine.send(message)
        except ConnectionClosed:
            if self._client.close_code is None:
                await asyncio.Event().wait()  # the engine is gone: whoever reads from it tells the client

    async def _may_pass(self, message: str) -> bool:
        body = message.encode()
        try:
            document = parse_document(body)
        except BadDocument as error:
            await self._tell(400, Reason.BAD_JSON, f"The message is not valid JSON: {error}.")
            return False
        if self._is_stopping and document.get("type") == ASKS:
            await self._tell(503, Reason.NO_ENDPOINT, "This engine takes nothing new; connect again.")
            return False
        exhausted = self._meter.client_said(document, len(body))
        if exhausted is None:
            return True
        await self._tell_exhausted(exhausted, document.get("event_id"))
        return False

    async def _down(self, engine: ClientConnection) -> None:
        """What the engine says, to the end of its connection."""
        try:
            async for message in engine:
                self._heard = asyncio.get_running_loop().time()
                if not await self._pass_down(message):
                    return
        except ConnectionClosed:
            pass
        if self._client.close_code is not None:
            return
        if engine.close_code == CloseCode.NORMAL_CLOSURE:
            self._end = End.WHOLE
            await self._client.close(CloseCode.NORMAL_CLOSURE, "the engine ended the session")
            return
        self._end = End.ENGINE_LOST
        self._admitted.failed(self.address)
        await self._tell(502, Reason.ENGINE_LOST, "The engine broke off.")
        await self._client.close(CloseCode.INTERNAL_ERROR, "the engine broke off")

    async def _pass_down(self, message: str | bytes) -> bool:
        """Whether the session goes on."""
        exhausted = self._meter.engine_said(_read(message)) if isinstance(message, str) else None
        if exhausted is not None:  # the engine began by itself what can't be paid
            await self._tell_exhausted(exhausted, None)
            await self._client.close(CloseCode.POLICY_VIOLATION, "the budget is used up")
            return False
        await self._client.send(message)
        return True

    async def _watch(self) -> None:
        """Close what is idle, old, or at an engine that is drained; return at once when the key is taken back."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._settings.life_seconds
        while not self._revoked:
            await asyncio.sleep(LOOK_SECONDS)
            now = loop.time()
            self._is_stopping = self._is_stopping or now >= end
            if self._is_stopping and self._meter.is_idle:
                await self._leave(CloseCode.SERVICE_RESTART, "this engine takes nothing new; connect again")
                return
            if now - self._heard > self._settings.idle_seconds:
                await self._leave(CloseCode.NORMAL_CLOSURE, "nothing was said for too long")
                return
        self._end = End.REVOKED

    async def _leave(self, code: CloseCode, reason: str) -> None:
        self._end = End.WHOLE
        await self._client.close(code, reason)

    async def _tell_exhausted(self, exhausted: Exhausted, event: object) -> None:
        await self._tell(429, exhausted.code, exhausted.message, event)

    async def _tell(self, status: int, code: str, text: str, event: object = None) -> None:
        """An error in the words of the realtime API."""
        error = {"type": error_type(status), "code": code, "message": text, "param": None, "event_id": event}
        try:
            await self._client.send(json.dumps({"type": "error", "error": error}))
        except ConnectionClosed:
            return


def _read(message: str) -> Mapping[str, object]:
    """What an engine says; what can't be read says nothing to the meter."""
    try:
        document: object = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
