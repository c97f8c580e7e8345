"""The endpoint picker as a gRPC service on a port of its own: started, asked how it is, drained."""

import asyncio
import os
import socket
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from gateway.decision import DecisionCore
from gateway.endpoint_picker import CorePicker
from gateway.error_places import kind_and_place
from gateway.errors import GatewayError
from gateway.ext_proc import METHOD, SERVICE, ExternalProcessor, log_failure
from gateway.grpc_health import LIVENESS, READINESS, health_methods
from gateway.http2.grpc_server import grpc_server
from gateway.http2.protocol import Http2Server
from gateway.local_files import BACKLOG
from gateway.settings import GatewaySettings, PickerSettings
from gateway.shadows import Shadows
from gateway.sharing import Sharing
from gateway.telemetry import Telemetry

if TYPE_CHECKING:
    from gateway.spans import Spans

READY_SECONDS = 0.05
"""How often a worker looks whether it has a snapshot."""
CERTIFICATE_SECONDS = 10.0
"""How often it is looked whether the certificate was renewed."""
_log = structlog.get_logger("gateway.picker")


def picker_of(
    settings: GatewaySettings,
    core: DecisionCore,
    telemetry: Telemetry,
    spans: "Spans | None",
    sharing: Sharing | None,
    shadows: Shadows,
) -> "PickerService":
    """The service of one gateway process."""
    picker = CorePicker(
        core,
        now_unix_seconds=time.time,
        now_monotonic_seconds=time.perf_counter,
        decided=telemetry.decided,
        begin_span=spans.begin if spans else lambda *_: (),
        second_look=sharing.second_look if sharing else None,
        send_copy=shadows.send,
    )
    return PickerService(settings.endpoint_picker, picker, lambda: core.index is not None)


class PickerService:
    """Listens where the settings say; without settings it does nothing."""

    def __init__(self, settings: PickerSettings | None, picker: CorePicker, is_ready: Callable[[], bool]) -> None:
        """``is_ready``: whether requests can be decided about."""
        self._settings = settings
        self._picker = picker
        self._is_ready = is_ready
        self._is_stopping: Callable[[], bool] = lambda: False
        self._server: Http2Server | None = None
        self._listening: asyncio.Task[None] | None = None
        self._listener: asyncio.Server | None = None
        self._certificate: _Certificate | None = None

    def __len__(self) -> int:
        """Requests that were picked and are not over."""
        return len(self._picker)

    async def start(self, is_stopping: Callable[[], bool], *, shares_port: bool) -> None:
        """Listen; ``is_stopping``: whether no more should come, ``shares_port``: whether other workers listen too.

        Then this one does so when it is ready: what another one says of its health is taken for all of them.
        """
        told = self._settings
        if told is None:
            return
        self._is_stopping = is_stopping
        loop = asyncio.get_running_loop()
        processor = ExternalProcessor(clock=loop.time, call_later=loop.call_later, picker=self._picker)
        serving = {LIVENESS: lambda: True, READINESS: self._is_serving, SERVICE: self._is_serving}
        methods = {METHOD: processor.open, **health_methods(serving)}
        self._server = grpc_server(methods, clock=loop.time, on_failure=log_failure)
        self._certificate = _certificate_of(told)
        bound = _bound(told, shares_port=shares_port)
        self._listening = loop.create_task(self._listen(bound, self._server, waits=shares_port))
        if not shares_port:
            await self._listening

    async def _listen(self, bound: socket.socket, server: Http2Server, *, waits: bool) -> None:
        context = None if self._certificate is None else self._certificate.context
        with bound:
            while waits and not self._is_ready():  # noqa: ASYNC110 - a snapshot tells nobody that it has come
                await asyncio.sleep(READY_SECONDS)
            loop = asyncio.get_running_loop()
            self._listener = await loop.create_server(server.connection, sock=bound.dup(), ssl=context, backlog=BACKLOG)
        _log.info("picker.listening", is_encrypted=context is not None)

    def look(self) -> None:
        """See whether the certificate was renewed; it is looked for now and then anyway."""
        if self._certificate is not None:
            self._certificate.look()

    async def drain(self, deadline_seconds: float) -> None:
        """Let every request end, but no longer than this."""
        if self._certificate is not None:
            self._certificate.stop()
        if self._listening is not None:
            self._listening.cancel()
        if self._listener is not None:
            self._listener.close()
        if self._server is not None:
            await self._server.drain(deadline_seconds)

    def _is_serving(self) -> bool:
        return self._is_ready() and not self._is_stopping()


class _Certificate:
    """A certificate that may be renewed while it is used; new connections get the new one."""

    def __init__(self, cert_file: str, key_file: str) -> None:
        self._files = (cert_file, key_file)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["h2"])
        self._read = self._when()
        self.context.load_cert_chain(*self._files)
        self._timer = asyncio.get_running_loop().call_later(CERTIFICATE_SECONDS, self._look_again)

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _when(self) -> tuple[int, ...]:
        return tuple(os.stat(file).st_mtime_ns for file in self._files)

    def _look_again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(CERTIFICATE_SECONDS, self._look_again)
        self.look()

    def look(self) -> None:
        """Use the files as they are now, if they have changed and can be read."""
        try:
            if (now := self._when()) == self._read:
                return
            self._read = now
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)  # half a renewal must not be used
            self.context.load_cert_chain(*self._files)
        except OSError:  # the one before goes on
            _log.error("picker.certificate_not_read", **kind_and_place())
        else:
            _log.info("picker.certificate_renewed")


def _bound(told: PickerSettings, *, shares_port: bool) -> socket.socket:
    """The place, taken: who does not listen yet gets no connections of it."""
    family = socket.AF_INET6 if ":" in told.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((told.host, told.port))
    except OSError as error:
        bound.close()
        message = f"cannot listen on {told.host}:{told.port} for the endpoint picker: {error.strerror}"
        raise GatewayError(f"{message}; set another endpoint_picker.port") from error
    return bound


def _certificate_of(told: PickerSettings) -> _Certificate | None:
    if told.tls_cert_file is None or told.tls_key_file is None:
        return None
    try:
        return _Certificate(str(told.tls_cert_file), str(told.tls_key_file))
    except OSError as error:
        files = f"{told.tls_cert_file} and {told.tls_key_file}"
        message = f"the endpoint picker's certificate and key can't be read from {files}: {error.strerror or error}"
        raise GatewayError(message) from error
