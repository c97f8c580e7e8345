"""The port on which metrics and health are asked for, over HTTP."""

import asyncio

from gateway.errors import GatewayError
from gateway.exchange import HttpResponse
from gateway.http_protocol import Handler, HttpServer

_MAX_BODY_BYTES = 1024
_IDLE_SECONDS = 90.0
"""Above the usual pause between two scrapes of one connection."""


class MetricsPort:
    """One listener, of one process."""

    def __init__(self, page: Handler) -> None:
        """``page`` answers each request."""
        self._server = HttpServer(
            page, max_body_bytes=_MAX_BODY_BYTES, on_failure=lambda _: HttpResponse(500), idle_seconds=_IDLE_SECONDS
        )

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Serve; raises GatewayError for a port that is taken."""
        try:
            return await asyncio.get_running_loop().create_server(self._server.connection, host, port)
        except OSError as error:
            message = f"cannot listen on {host}:{port} for metrics: {error.strerror}; set another metrics_port"
            raise GatewayError(message) from error

    async def drain(self, deadline_seconds: float) -> None:
        """Let what is being answered end, but no longer than this, and close every connection."""
        await self._server.drain(deadline_seconds)
