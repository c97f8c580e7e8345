"""Answers in the place of the gateway's decision and log with next to no work: what its Envoy costs by itself.

Run: ``python benchmarks/gateway_constant.py FOLDER LISTEN_PORT ADMIN_PORT ENGINE...``, engines by their addresses. It
writes the product's own configuration for Envoy to FOLDER/state/envoy.json and answers on the sockets that stand in it;
every request may go on to the first engine.
"""

import asyncio
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from gateway.access_log_service import METHOD, AccessLogReceiver
from gateway.endpoints import EndpointFile
from gateway.envoy import EnvoyPlaces, bootstrap_json
from gateway.exchange import HttpResponse
from gateway.ext_authz import (
    DEPLOYMENT_HEADER,
    DESTINATION_HEADER,
    IDENTITY_HEADER,
    MODEL_HEADER,
    REMOVE_HEADER,
    SERVED_MODEL_HEADER,
    TENANT_HEADER,
    TICKET_HEADER,
    UNGUARDED_HEADER,
    USAGE_WHOLE,
)
from gateway.http2.grpc_server import grpc_server
from gateway.http_protocol import HttpServer
from gateway.worker_sockets import WorkerSockets

_BODY_BYTES = 9 * 1024 * 1024


async def serve(folder: Path, listen_port: int, admin_port: int, engines: Sequence[str]) -> None:
    """Run until ended."""
    state = folder / "state"
    sockets = WorkerSockets(*(folder / name for name in ("decision", "guard", "log", "websockets")))
    places = EnvoyPlaces("127.0.0.1", listen_port, admin_port, (sockets,), state / "endpoints.json")
    EndpointFile(places.endpoints_path).show(frozenset(engines), 0.0)
    loop, numbers = asyncio.get_running_loop(), itertools.count()
    same = (
        (DESTINATION_HEADER, ",".join(engines)),
        (TENANT_HEADER, "acme"),
        (MODEL_HEADER, "chat-direct"),
        (DEPLOYMENT_HEADER, "chat"),
        (IDENTITY_HEADER, "0" * 32),
        (UNGUARDED_HEADER, USAGE_WHOLE),
        (SERVED_MODEL_HEADER, "chat-direct"),
        (REMOVE_HEADER, "authorization,x-api-key,x-arm"),
    )

    def answer(_: object) -> HttpResponse:
        return HttpResponse(200, (*same, (TICKET_HEADER, f"{next(numbers):032x}")))

    decisions = HttpServer(answer, max_body_bytes=_BODY_BYTES, on_failure=answer)
    log = AccessLogReceiver(lambda _: None, namespaces=(), on_failure=lambda: None)
    ends = grpc_server({METHOD: log.open}, clock=loop.time, on_failure=lambda: None)
    listening = [
        await loop.create_unix_server(decisions.connection, str(sockets.decision)),
        await loop.create_unix_server(ends.connection, str(sockets.access_log)),
    ]
    (state / "envoy.json").write_bytes(bootstrap_json(places))
    await asyncio.gather(*(server.serve_forever() for server in listening))


if __name__ == "__main__":
    listen, admin, *addresses = sys.argv[2:]
    uvloop.run(serve(Path(sys.argv[1]), int(listen), int(admin), addresses))
