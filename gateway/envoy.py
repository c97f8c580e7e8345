"""Envoy's bootstrap configuration, as the JSON that ``envoy -c`` reads."""

import json
from dataclasses import dataclass
from pathlib import Path

from gateway.envoy_clusters import (
    access_log_cluster,
    decision_cluster,
    engines_cluster,
    guard_cluster,
    sockets_cluster,
)
from gateway.envoy_listener import public_listener
from gateway.envoy_types import Json, socket_address, typed
from gateway.worker_sockets import WorkerSockets

ADMIN_HOST = "127.0.0.1"
MAX_CONNECTIONS = 10_000


@dataclass(frozen=True, slots=True)
class EnvoyPlaces:
    """Where Envoy listens, and where it finds the rest of the gateway."""

    listen_host: str
    listen_port: int
    admin_port: int
    workers: tuple[WorkerSockets, ...]
    """The Unix sockets of each worker: decision service, guard, access log service, WebSocket connections."""
    endpoints_path: Path
    """The file of endpoints; its folder is watched."""


def bootstrap(places: EnvoyPlaces) -> Json:
    """The whole configuration."""
    return {
        "node": {"id": "gateway", "cluster": "gateway"},
        "admin": {"address": socket_address(ADMIN_HOST, places.admin_port)},
        "static_resources": {
            "listeners": [public_listener(places.listen_host, places.listen_port, places.workers)],
            "clusters": [
                decision_cluster([worker.decision for worker in places.workers]),
                guard_cluster([worker.guard for worker in places.workers]),
                sockets_cluster([worker.websockets for worker in places.workers]),
                *(access_log_cluster(number, worker.access_log) for number, worker in enumerate(places.workers)),
                engines_cluster(places.endpoints_path),
            ],
        },
        "overload_manager": {
            "resource_monitors": [
                typed(
                    "envoy.resource_monitors.global_downstream_max_connections",
                    "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                    max_active_downstream_connections=MAX_CONNECTIONS,
                )
            ]
        },
    }


def bootstrap_json(places: EnvoyPlaces) -> bytes:
    """The text of the file."""
    return json.dumps(bootstrap(places), indent=1).encode()
