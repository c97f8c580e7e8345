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

ADMIN_HOST = "127.0.0.1"
MAX_CONNECTIONS = 10_000


@dataclass(frozen=True, slots=True)
class EnvoyPlaces:
    """Where Envoy listens, and where it finds the rest of the gateway."""

    listen_host: str
    listen_port: int
    admin_port: int
    socket_path: Path
    """The Unix socket of the decision service."""
    guard_path: Path
    """The Unix socket of the guard."""
    access_log_path: Path
    """The Unix socket of the access log service."""
    sockets_path: Path
    """The Unix socket of the service that ends WebSocket connections."""
    endpoints_path: Path
    """The file of endpoints; its folder is watched."""


def bootstrap(places: EnvoyPlaces) -> Json:
    """The whole configuration."""
    return {
        "node": {"id": "gateway", "cluster": "gateway"},
        "admin": {"address": socket_address(ADMIN_HOST, places.admin_port)},
        "static_resources": {
            "listeners": [public_listener(places.listen_host, places.listen_port)],
            "clusters": [
                decision_cluster(places.socket_path),
                guard_cluster(places.guard_path),
                sockets_cluster(places.sockets_path),
                access_log_cluster(places.access_log_path),
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
