"""The service behind Envoy that ends WebSocket connections: chats turn by turn, and sessions with an engine."""

import asyncio
from collections import Counter
from http import HTTPStatus
from pathlib import Path
from typing import cast

from websockets.asyncio.server import Server, ServerConnection, unix_serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from gateway.admitted import Admitted
from gateway.arms import usable_endpoints
from gateway.chat_session import ChatSession
from gateway.ext_authz import TICKET_HEADER
from gateway.index import SnapshotIndex
from gateway.local_files import BACKLOG
from gateway.own_door import OwnDoor
from gateway.passage import End, Ending
from gateway.realtime_session import RealtimeSession
from gateway.refusals import Reason, error_body
from gateway.session_rights import SessionRights
from gateway.socket_metrics import SocketMetrics
from gateway.socket_settings import SocketSettings
from gateway.socket_tickets import SocketTickets
from gateway.tickets import Tickets
from gateway.websocket_log import silent

OPEN_SECONDS = 10.0
CLOSE_SECONDS = 2.0
"""How long a client may take to say goodbye."""
_QUEUED_FRAMES = 4
_NEVER_OPEN = Ending(End.NO_ENGINE, 0, None)
_NO_UPGRADE = "This path is a WebSocket of version 13 (RFC 6455); open it with a WebSocket client."


class TenantConnection(ServerConnection):
    """A connection that knows whose it is, and what was admitted for it."""

    tenant = ""
    admitted: Admitted | None = None
    """Of a session with an engine, until that begins."""

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over, perhaps before it was open."""
        super().connection_lost(exc)
        if self.admitted is not None:
            self.admitted.end(_NEVER_OPEN)


class ChatSockets:
    """The connections of one worker."""

    def __init__(
        self,
        tickets: SocketTickets,
        passages: Tickets,
        door: OwnDoor,
        settings: SocketSettings,
        metrics: SocketMetrics,
    ) -> None:
        self._tickets = tickets
        self._passages = passages
        self._door = door
        self._settings = settings
        self._metrics = metrics
        self._open: Counter[str] = Counter()
        self._sessions: dict[ChatSession | RealtimeSession, SessionRights] = {}
        self._index: SnapshotIndex | None = None
        self._server: Server | None = None
        metrics.watch_open(self._count)

    async def listen(self, path: Path) -> None:
        """Take connections on a Unix socket."""
        self._server = await unix_serve(
            self._serve,
            path,
            create_connection=TenantConnection,
            compression=None,  # it costs every connection more memory than all the rest of it
            process_request=self._admit,
            process_response=_in_our_form,
            server_header=None,
            open_timeout=OPEN_SECONDS,
            ping_interval=self._settings.ping_seconds,
            ping_timeout=self._settings.pong_seconds,
            close_timeout=CLOSE_SECONDS,
            max_size=self._settings.max_message_bytes,
            max_queue=_QUEUED_FRAMES,
            backlog=BACKLOG,
            logger=silent(),
        )

    async def drain(self, deadline_seconds: float) -> None:
        """Take nothing new; idle connections end now, the others after their turn or at the deadline."""
        if self._server is None:
            return
        self._server.close(close_connections=False)
        for session in self._sessions:
            session.stop()
        try:
            async with asyncio.timeout(deadline_seconds):
                await self._server.wait_closed()
        except TimeoutError:
            for connection in self._server.connections:
                connection.transport.abort()
            await self._server.wait_closed()

    def look(self, index: SnapshotIndex | None, now_unix_seconds: float) -> None:
        """End what was opened by keys that count no more, and sessions at engines that take nothing new."""
        if index is None:
            return
        for session, rights in self._sessions.items():
            lost = rights.lost(index, now_unix_seconds)
            if lost is not None:
                session.revoke(lost)
        if index is self._index:
            return
        self._index = index
        arms = (arm for route in index.routes.values() for arm in route.arms)
        serving = {endpoint.address for arm in arms for endpoint in usable_endpoints(arm)}
        for session in self._sessions:
            if isinstance(session, RealtimeSession) and session.address and session.address not in serving:
                session.stop()

    def _count(self) -> int:
        return len(self._sessions)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """An upgrade that the decision service let through, and for which there is room."""
        ticket = request.headers.get(TICKET_HEADER, "")
        admitted = self._passages.take(ticket)
        cast(TenantConnection, connection).admitted = admitted
        tenant = self._tickets.take(ticket) if admitted is None else admitted.reservation.tenant
        if tenant is None:
            return _refusal(HTTPStatus.FORBIDDEN, Reason.NOT_ADMITTED, "This request was not admitted by the gateway.")
        if self._open[tenant] >= self._settings.max_per_tenant:
            text = f"More than {self._settings.max_per_tenant} connections are open; close some of them."
            return _refusal(HTTPStatus.TOO_MANY_REQUESTS, Reason.TOO_MANY_REQUESTS, text)
        cast(TenantConnection, connection).tenant = tenant
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        own = cast(TenantConnection, connection)
        tenant = own.tenant
        model = None if own.admitted is None else own.admitted.model
        headers = () if own.request is None else own.request.headers.raw_items()
        session = self._session(own)
        self._sessions[session] = SessionRights(headers, tenant, model)
        self._open[tenant] += 1
        try:
            await session.run()
        finally:
            del self._sessions[session]
            self._open[tenant] -= 1
            self._metrics.closed(connection.close_code)

    def _session(self, connection: TenantConnection) -> ChatSession | RealtimeSession:
        admitted, connection.admitted = connection.admitted, None
        if admitted is not None:
            return RealtimeSession(connection, admitted, self._settings)
        return ChatSession(connection, connection.tenant, self._door, self._settings, self._metrics)


def _in_our_form(_: ServerConnection, __: Request, response: Response) -> Response | None:
    """What is no upgrade is told so as every error of the gateway."""
    if response.status_code == HTTPStatus.SWITCHING_PROTOCOLS or "content-type" not in response.headers:
        return None
    if response.headers["content-type"].startswith("application/json"):
        return None
    told = _refusal(HTTPStatus(response.status_code), Reason.WEBSOCKET_ONLY, _NO_UPGRADE)
    if "upgrade" in response.headers:
        told.headers["upgrade"] = response.headers["upgrade"]
    return told


def _refusal(status: HTTPStatus, code: str, text: str) -> Response:
    body = error_body(status, text, code=code)
    headers = Headers(
        [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
    )
    return Response(status.value, status.phrase, headers, body)
