"""Real Envoy between clients and two engines, with the service in this process: the smallest configuration that works.

``bootstrap`` and what it calls are the facts about Envoy's configuration that external processing and the access log
need; everything else is left at its default.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest
import uvloop

from gateway.access_log_service import METHOD as LOG
from gateway.access_log_service import AccessLogReceiver
from gateway.envoy_types import message, socket_address, typed
from gateway.ext_proc import METHOD, ExternalProcessor
from gateway.http2.grpc_server import grpc_server
from gateway.http2.limits import Limits
from tests.free_ports import free_port

_HTTP = "envoy.extensions.filters.http"
_POLICIES = "envoy.extensions.load_balancing_policies"
_EXT_PROC = f"{_HTTP}.ext_proc.v3"
FEW = Limits(resets=20, resets_per_second=0.01, control_frames=100, control_frames_per_second=0.01)
"""Far below what all tests together ask for: calls that end as Envoy ends them may not count."""
DECISION = "envoy.filters.http.ext_authz"
PICKING = {
    "request_header_mode": "SEND",
    "request_body_mode": "FULL_DUPLEX_STREAMED",
    "request_trailer_mode": "SEND",
    "response_header_mode": "SEND",
    "response_body_mode": "FULL_DUPLEX_STREAMED",
    "response_trailer_mode": "SEND",
}
SILENT = {
    "request_header_mode": "SKIP",
    "response_header_mode": "SKIP",
    "request_trailer_mode": "SKIP",
    "response_trailer_mode": "SKIP",
}
FILTERING = SILENT | {
    "response_header_mode": "SEND",
    "response_body_mode": "FULL_DUPLEX_STREAMED",
    "response_trailer_mode": "SEND",
}
DECIDE = """
function envoy_on_request(handle)
  local name = handle:headers():get("x-test-filter")
  local metadata = handle:streamInfo():dynamicMetadata()
  metadata:set("envoy.filters.http.ext_authz", "x-gateway-ticket", "t-1")
  metadata:set("envoy.filters.http.ext_authz", "x-gateway-tenant", "acme")
  if name then
    metadata:set("envoy.filters.http.ext_authz", "x-gateway-output-filter", name)
    handle:clearRouteCache()
  end
end
function envoy_on_response(handle)
  local chunks = 0
  for chunk in handle:bodyChunks() do
    chunks = chunks + 1
    handle:streamInfo():dynamicMetadata():set("usage", "chunks", chunks)
  end
end
"""
"""In the place of the decision service: what it leaves in the metadata, and the route chosen anew by it."""


def _cluster(name, *addresses, h2=False, **more):
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    windows = {"initial_stream_window_size": 262_144, "initial_connection_window_size": 8_388_608}
    protocol = {"http2_protocol_options": windows} if h2 else {"http_protocol_options": {}}
    endpoints = [{"endpoint": {"address": address}} for address in addresses]
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "per_connection_buffer_limit_bytes": 65_536,
        "typed_extension_protocol_options": {options: message(options, explicit_http_config=protocol)},
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
        **more,
    }


def _picked_host():
    turns = typed("envoy.load_balancing_policies.round_robin", f"{_POLICIES}.round_robin.v3.RoundRobin")
    source = {"metadata": {"key": "envoy.lb", "path": [{"key": "x-gateway-destination-endpoint"}]}}
    override = typed(
        "envoy.load_balancing_policies.override_host",
        f"{_POLICIES}.override_host.v3.OverrideHost",
        override_host_sources=[source],
        fallback_policy={"policies": [{"typed_extension_config": turns}]},
    )
    return {"policies": [{"typed_extension_config": override}]}


def _listener(name, port, filters, routes):
    log = typed(
        "envoy.access_loggers.http_grpc",
        "envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig",
        common_config={
            "log_name": name,
            "transport_api_version": "V3",
            "grpc_service": {"envoy_grpc": {"cluster_name": name}},
            "buffer_flush_interval": "0.05s",
        },
    )
    manager = typed(
        "envoy.filters.network.http_connection_manager",
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=name,
        access_log=[log],
        route_config={"virtual_hosts": [{"name": name, "domains": ["*"], "routes": routes}]},
        http_filters=[*filters, typed("envoy.filters.http.router", f"{_HTTP}.router.v3.Router")],
    )
    return {
        "name": name,
        "address": socket_address("127.0.0.1", port),
        "per_connection_buffer_limit_bytes": 65_536,
        "filter_chains": [{"filters": [manager]}],
    }


def _processor(cluster, mode, namespaces, **service):
    return typed(
        "envoy.filters.http.ext_proc",
        f"{_EXT_PROC}.ExternalProcessor",
        grpc_service={"envoy_grpc": {"cluster_name": cluster}, **service},
        processing_mode=mode,
        message_timeout="10s",
        status_on_error={"code": "ServiceUnavailable"},
        metadata_options={
            "forwarding_namespaces": {"untyped": namespaces},
            "receiving_namespaces": {"untyped": ["envoy.lb"]},
        },
    )


class Lab:
    """Two engines, the service on two Unix sockets, and Envoy with a listener that picks and one that filters."""

    def __init__(self, folder):
        self.folder = folder
        self.loop = uvloop.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.picker = self.chooser = None
        self.ended, self.opened, self.closed, self.requests, self.aborted = [], [], 0, [], 0
        self.listeners, self.sockets, self.servers, self.flooded, self.expected = [], {}, {}, 0, 0
        self.engines = {name: self.run(self._engine(name)) for name in ("one", "two")}
        self.dead, self.picking_port, self.filtering_port, self.admin_port = (free_port() for _ in range(4))
        for name in ("picking", "filtering"):
            self.run(self._serve(name))
        self.envoy = None

    def run(self, what):
        return asyncio.run_coroutine_threadsafe(what, self.loop).result(10)

    def address(self, name):
        return f"127.0.0.1:{self.engines.get(name, self.dead)}"

    def client(self, port):
        """A client whose requests are counted, so that each test sees its own log entries alone."""
        return httpx2.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=20, event_hooks={"request": [self.count_request]}
        )

    def count_request(self, request=None):
        self.expected += 1

    def log(self):
        """An entry for each request since the last look."""
        deadline = time.monotonic() + 10
        while len(self.ended) < self.expected:
            assert time.monotonic() < deadline, f"{len(self.ended)} entries instead of {self.expected}"
            threading.Event().wait(0.01)
        entries, self.ended, self.expected = self.ended, [], 0
        return entries

    def start(self):
        file = self.folder / "envoy.json"
        file.write_text(json.dumps(self._bootstrap()))
        command = [str(Path(sys.executable).with_name("envoy")), "-c", str(file), "--concurrency", "1"]
        command += ["--disable-hot-restart", "-l", "warn"]
        clean = {name: word for name, word in os.environ.items() if name != "LD_PRELOAD"}
        with (self.folder / "envoy.log").open("wb") as log:
            self.envoy = subprocess.Popen(command, stdout=log, stderr=log, env=clean)
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.filtering_port), 1).close()
                return
            said = (self.folder / "envoy.log").read_text()[-2000:]
            assert self.envoy.poll() is None, said
            assert time.monotonic() < deadline, said
            threading.Event().wait(0.02)

    def stop(self):
        if self.envoy is not None and self.envoy.poll() is None:
            os.kill(self.envoy.pid, signal.SIGTERM)
            self.envoy.wait(10)
        self.run(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    def settled(self):
        """Until the engine's flood has stood still for a while."""
        seen, since, deadline = -1, 0.0, time.monotonic() + 20
        while self.flooded != seen or not seen or time.monotonic() < since + 0.5:
            assert time.monotonic() < deadline, "the engine is never stopped"
            if self.flooded != seen:
                seen, since = self.flooded, time.monotonic()
            threading.Event().wait(0.02)

    async def leave(self):
        """The service goes away."""
        for name, server in self.servers.items():
            self.sockets.pop(name).close()
            await server.drain(0.1)

    async def _stop(self):
        for listener in (*self.listeners, *self.sockets.values()):
            listener.close()
        for server in self.servers.values():
            await server.drain(0.1)
        await asyncio.sleep(0.05)  # one turn for what the closed connections leave to do

    async def _serve(self, name):
        clock, later = self.loop.time, self.loop.call_later
        part = {"picker": _Asked(self)} if name == "picking" else {"chooser": _Asked(self)}
        processor = ExternalProcessor(clock=clock, call_later=later, **part)
        log = AccessLogReceiver(self.ended_requests, namespaces=["usage", "envoy.lb"], on_failure=lambda: None)

        def opened(call):
            self.opened.append(dict(call.metadata))
            handler = processor.open(call)
            over = handler.closed
            handler.closed = lambda: (over(), self._closed())
            return handler

        methods = {METHOD: opened, LOG: log.open}
        self.servers[name] = grpc_server(methods, clock=clock, on_failure=lambda: None, limits=FEW)
        path = str(self.folder / name)
        self.sockets[name] = await self.loop.create_unix_server(self.servers[name].connection, path)

    def _closed(self):
        self.closed += 1

    def ended_requests(self, batch):
        self.ended += batch

    # engines

    async def _engine(self, name):
        async def serve(reader, writer):
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, RuntimeError):
                while True:
                    await self._answer(name, await _request(reader), writer)
            writer.close()

        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        self.listeners.append(listener)
        return listener.sockets[0].getsockname()[1]

    async def _answer(self, name, request, writer):
        head, body = request
        self.requests.append((name, head, body))
        if b'"stream"' not in body:
            said = json.dumps({"engine": name, "got": body.decode()}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(said), said))
            return
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        if b"flood" in body:
            await self._flood(writer)
        try:
            for number in range(10_000 if b"endless" in body else 3):
                for piece in (b'data: {"t":"sec', b'ret %d"}\n\n' % number):
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    await asyncio.sleep(0.005)  # so that the pieces stay pieces
            writer.write(b"0\r\n\r\n")
        except (ConnectionError, RuntimeError):
            self.aborted += 1
            raise

    async def _flood(self, writer):
        piece = b"400\r\n%s\r\n" % bytes(1024)
        while self.flooded < 2**28:
            writer.write(piece)
            await writer.drain()
            self.flooded += len(piece)

    # Envoy

    def _bootstrap(self):
        engines = [socket_address("127.0.0.1", port) for port in (*self.engines.values(), self.dead)]
        sockets = {name: {"pipe": {"path": str(self.folder / name)}} for name in ("picking", "filtering")}
        clusters = [_cluster(name, address, h2=True) for name, address in sockets.items()]
        clusters.append(_cluster("engines", *engines, load_balancing_policy=_picked_host()))
        clusters.append(_cluster("one", socket_address("127.0.0.1", self.engines["one"])))
        return {
            "admin": {"address": socket_address("127.0.0.1", self.admin_port)},
            "static_resources": {"clusters": clusters, "listeners": [self._picks(), self._filters()]},
        }

    def _picks(self):
        picks = _processor("picking", PICKING, ["envoy.lb", "envoy.lb.subset_hint"])
        retries = {"retry_on": "connect-failure", "num_retries": 2}
        route = {"cluster": "engines", "timeout": "0s", "retry_policy": retries}
        return _listener("picking", self.picking_port, [picks], [{"match": {"prefix": "/"}, "route": route}])

    def _filters(self):
        decides = typed("envoy.filters.http.lua", f"{_HTTP}.lua.v3.Lua", default_source_code={"inline_string": DECIDE})
        said = {"key": "x-gateway-tenant", "value": f"%DYNAMIC_METADATA({DECISION}:x-gateway-tenant)%"}
        filters = _processor("filtering", SILENT, [DECISION], initial_metadata=[said])
        on = message(f"{_EXT_PROC}.ExtProcPerRoute", overrides={"processing_mode": FILTERING})
        asked = {"filter": DECISION, "path": [{"key": "x-gateway-output-filter"}]}
        asked["value"] = {"string_match": {"safe_regex": {"regex": ".+"}}}
        to = {"cluster": "one", "timeout": "0s"}
        filtered = {"match": {"prefix": "/", "dynamic_metadata": [asked]}, "route": to}
        filtered["typed_per_filter_config"] = {"envoy.filters.http.ext_proc": on}
        plain = {"match": {"prefix": "/"}, "route": to}
        return _listener("filtering", self.filtering_port, [decides, filters], [filtered, plain])


class _Asked:
    """Asks whatever picker and chooser a test has put into the lab."""

    reads_answers = False

    def __init__(self, lab):
        self.lab = lab

    def pick(self, asked, now):
        return self.lab.picker.pick(asked, now)

    def responded(self, pick, status, served):
        self.lab.picker.responded(pick, status, served)

    def passed(self, pick, data):
        self.lab.picker.passed(pick, data)

    def ended(self, pick, *, is_whole):
        self.lab.picker.ended(pick, is_whole=is_whole)

    def choose(self, head):
        return self.lab.chooser(head)


async def _request(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    sizes = [int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")]
    if sizes:
        return head, await reader.readexactly(sizes[0])
    body = b""
    while "transfer-encoding: chunked" in head.lower():
        size = int(await reader.readline(), 16)
        piece = await reader.readexactly(size + 2)
        if not size:
            break
        body += piece[:-2]
    return head, body


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    yield from running(tmp_path_factory.mktemp("lab"))


@pytest.fixture
def own_lab(tmp_path):
    """For a test that leaves nothing as it was."""
    yield from running(tmp_path)


def running(folder):
    made = Lab(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()
