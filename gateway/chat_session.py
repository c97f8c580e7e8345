"""One client on a chat's WebSocket: its turns one after the other, each decided about as a request of its own."""

import asyncio
from collections import deque
from http import HTTPStatus

import structlog
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from gateway.error_places import kind_and_place
from gateway.own_door import OwnDoor, headers_of_turns
from gateway.refusals import Reason
from gateway.socket_metrics import SocketMetrics
from gateway.socket_settings import SocketSettings
from gateway.turn_answer import TurnAnswer
from gateway.turn_messages import DONE, Cancel, Turn, WrongTurn, said

_log = structlog.get_logger("gateway.chat_session")
_CANCELLED_STATUS = 499
_UNTIL_A_TURN = "no turn for too long"
_LIFE = "the connection was open for long enough; connect again"
_DRAINING = "the gateway is stopping; connect again"


class ChatSession:
    """Reads what the client says while its turns are answered in their order."""

    def __init__(
        self, connection: ServerConnection, tenant: str, door: OwnDoor, settings: SocketSettings, metrics: SocketMetrics
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._door = door
        self._settings = settings
        self._metrics = metrics
        request = connection.request
        self._headers = headers_of_turns(request.headers.raw_items()) if request is not None else ()
        self._turns: deque[Turn | WrongTurn] = deque()
        self._answer: TurnAnswer | None = None
        self._news = asyncio.Event()
        self._is_stopping = False
        self._revoked = ""

    async def run(self) -> None:
        """Until one of both closes the connection."""
        work = asyncio.create_task(self._work())
        try:
            await self._read()
        except ConnectionClosed:
            if self._answer is not None:
                self._answer.cut()  # nobody reads any more
        except Exception:
            await self._failed()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    def stop(self) -> None:
        """Take no new turn, and close after the one that runs."""
        self._is_stopping = True
        self._news.set()

    def revoke(self, reason: str) -> None:
        """Take no new turn, and close for this reason after the one that runs."""
        self._revoked = reason
        self._news.set()

    async def _read(self) -> None:
        while True:
            message = await self._connection.recv()
            if isinstance(message, bytes):
                await self._close(CloseCode.UNSUPPORTED_DATA, "messages are texts")
                continue
            heard = said(message)
            if isinstance(heard, Cancel):
                if self._answer is not None:
                    self._answer.fail(_CANCELLED_STATUS, Reason.CANCELLED, "The turn was cancelled by its client.")
            elif self._has_room(heard):
                self._turns.append(heard)
                self._news.set()
            else:
                await self._close(CloseCode.POLICY_VIOLATION, "too many turns wait; send the next one later")

    def _has_room(self, turn: Turn | WrongTurn) -> bool:
        """Few turns wait, and together they are no larger than one may be."""
        if not self._turns and (self._answer is None or self._settings.max_waiting_turns):
            return True
        size = sum(map(_size, self._turns)) + _size(turn)
        return len(self._turns) < self._settings.max_waiting_turns and size <= self._settings.max_message_bytes

    async def _work(self) -> None:
        try:
            await self._answer_turns()
        except ConnectionClosed:
            return
        except Exception:
            await self._failed()

    async def _failed(self) -> None:
        _log.error("chat_session.failed", **kind_and_place())
        await self._close(CloseCode.INTERNAL_ERROR, "the gateway failed")

    async def _answer_turns(self) -> None:
        end = asyncio.get_running_loop().time() + self._settings.life_seconds
        while True:
            turn = await self._next_turn(end)
            if turn is None:
                return
            status = await self._wrong(turn) if isinstance(turn, WrongTurn) else await self._pass_on(turn)
            self._metrics.turn(self._tenant, status)
            if status == HTTPStatus.UNAUTHORIZED:
                await self._close(CloseCode.POLICY_VIOLATION, "the key is not accepted any more")
                return

    async def _next_turn(self, end: float) -> Turn | WrongTurn | None:
        """The next one; ``None`` = the connection was closed, because there is none for too long or may be none."""
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(end, now + self._settings.idle_seconds)):
                while not (self._turns or self._is_stopping or self._revoked):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            now = asyncio.get_running_loop().time()
        if self._revoked:
            await self._close(CloseCode.POLICY_VIOLATION, self._revoked)
        elif self._is_stopping:
            await self._close(CloseCode.SERVICE_RESTART, _DRAINING)
        elif now >= end:
            await self._close(CloseCode.SERVICE_RESTART, _LIFE)
        elif self._turns:
            return self._turns.popleft()
        else:
            await self._close(CloseCode.NORMAL_CLOSURE, _UNTIL_A_TURN)
        return None

    async def _wrong(self, turn: WrongTurn) -> int:
        await self._connection.send(turn.message)
        await self._connection.send(DONE)
        return HTTPStatus.BAD_REQUEST

    async def _pass_on(self, turn: Turn) -> int:
        """From the request to the last message of its answer; what it was answered with."""
        answer = self._answer = TurnAnswer()
        try:
            await self._ask(answer, turn)
            while (message := await answer.next()) is not None:
                await self._connection.send(message)
        finally:
            answer.cut()
            self._answer = None
        return answer.status

    async def _ask(self, answer: TurnAnswer, turn: Turn) -> None:
        try:
            connection = await self._door.open()
        except OSError:
            answer.fail(HTTPStatus.SERVICE_UNAVAILABLE, Reason.INTERNAL, "The gateway cannot be reached by itself.")
        else:
            answer.ask(connection, self._door.chat(self._headers, turn.body))

    async def _close(self, code: CloseCode, reason: str) -> None:
        await self._connection.close(code, reason)


def _size(turn: Turn | WrongTurn) -> int:
    return len(turn.body) if isinstance(turn, Turn) else len(turn.message)
