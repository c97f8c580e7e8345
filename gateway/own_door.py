"""How a turn goes to the gateway's own public door, as its client would send it."""

import asyncio
from collections.abc import Iterable

from gateway.engine_connections import CONNECT_SECONDS, EngineConnection
from gateway.ext_authz import PIN_HEADER
from gateway.targets import Target, engine_at

CHAT_PATH = "/v1/chat/completions"
SESSION_PREFIX = "x-session-"
_PASSED_ON = frozenset({"authorization", "x-api-key", "traceparent", "tracestate", PIN_HEADER})
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 what Envoy listens on is no address to connect to


class OwnDoor:
    """Envoy's public listener, seen from the same machine."""

    def __init__(self, listen_host: str, listen_port: int) -> None:
        host = _ANY.get(listen_host, listen_host)
        self._target: Target = engine_at(f"[{host}]:{listen_port}" if ":" in host else f"{host}:{listen_port}")

    async def open(self) -> EngineConnection:
        """A connection for one request.

        Raises:
            OSError: nobody listens.
        """
        async with asyncio.timeout(CONNECT_SECONDS):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: EngineConnection(self._target, EngineConnection.cut), self._target.host, self._target.port
            )
        return connection

    def chat(self, headers: tuple[tuple[str, str], ...], body: bytes) -> bytes:
        """The request of a turn."""
        lines = [
            f"POST {CHAT_PATH} HTTP/1.1",
            f"host: {self._target.authority}",
            "content-type: application/json",
            "accept: text/event-stream",
            f"content-length: {len(body)}",
            "connection: close",
            *(f"{name}: {value}" for name, value in headers),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace") + body


def headers_of_turns(upgrade: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """What each turn carries of the headers that the connection was opened with: who asks, and which session it is."""
    named = ((name.lower(), value) for name, value in upgrade)
    return tuple(item for item in named if item[0] in _PASSED_ON or item[0].startswith(SESSION_PREFIX))
