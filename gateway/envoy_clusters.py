"""Where Envoy connects to: the decision service, the guard, and the engines."""

from pathlib import Path

from gateway.engine_connections import CONNECT_SECONDS, IDLE_SECONDS
from gateway.envoy_types import Json, message, seconds, typed
from gateway.ext_authz import DESTINATION_HEADER

DECISION_CLUSTER = "decision"
GUARD_CLUSTER = "guard"
SOCKETS_CLUSTER = "websockets"
ACCESS_LOG_CLUSTER = "access_log"
ENGINES_CLUSTER = "engines"
EXT_AUTHZ_METADATA = "envoy.filters.http.ext_authz"
GATEWAY_METADATA = "gateway"

MAX_PARALLEL = 65_536
"""Engines queue and reject by themselves; Envoy's default of 1,024 would come first."""

_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_POLICIES = "envoy.extensions.load_balancing_policies"


def decision_cluster(socket_path: Path) -> Json:
    """The decision service on its Unix socket."""
    return _at_socket(DECISION_CLUSTER, socket_path)


def guard_cluster(socket_path: Path) -> Json:
    """The guard on its Unix socket, which passes requests on to the engines."""
    return _at_socket(GUARD_CLUSTER, socket_path)


def sockets_cluster(socket_path: Path) -> Json:
    """The service that ends WebSocket connections, on its Unix socket."""
    return _at_socket(SOCKETS_CLUSTER, socket_path)


def access_log_cluster(socket_path: Path) -> Json:
    """The access log service on its Unix socket, which speaks HTTP/2."""
    http2 = message(_HTTP_OPTIONS, explicit_http_config={"http2_protocol_options": {}})
    return {**_at_socket(ACCESS_LOG_CLUSTER, socket_path), "typed_extension_protocol_options": {_HTTP_OPTIONS: http2}}


def engines_cluster(endpoints_path: Path) -> Json:
    """Every engine, read from a file that is replaced by renaming."""
    watched = {"path": str(endpoints_path), "watched_directory": {"path": str(endpoints_path.parent)}}
    return {
        "name": ENGINES_CLUSTER,
        "type": "EDS",
        "connect_timeout": seconds(CONNECT_SECONDS),
        "circuit_breakers": _circuit_breakers(),
        "eds_cluster_config": {
            "service_name": ENGINES_CLUSTER,
            "eds_config": {"resource_api_version": "V3", "path_config_source": watched},
        },
        "typed_extension_protocol_options": {
            _HTTP_OPTIONS: message(
                _HTTP_OPTIONS,
                explicit_http_config={"http_protocol_options": {}},
                common_http_protocol_options={"idle_timeout": seconds(IDLE_SECONDS)},
            )
        },
        "load_balancing_policy": {"policies": [{"typed_extension_config": _decided_host()}]},
    }


def _at_socket(name: str, path: Path) -> Json:
    endpoint = {"endpoint": {"address": {"pipe": {"path": str(path)}}}}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": seconds(CONNECT_SECONDS),
        "circuit_breakers": _circuit_breakers(),
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }


def _decided_host() -> Json:
    """The endpoints that the decision named, in its order, and nothing else.

    They are read from the decision's metadata, which no client can write. When none of them is there, a subset that
    matches nothing gives no host: the engine of another model is no way out.
    """
    turns = typed("envoy.load_balancing_policies.round_robin", f"{_POLICIES}.round_robin.v3.RoundRobin")
    nothing = typed(
        "envoy.load_balancing_policies.subset",
        f"{_POLICIES}.subset.v3.Subset",
        fallback_policy="NO_FALLBACK",
        subset_selectors=[{"keys": ["never"]}],
        subset_lb_policy={"policies": [{"typed_extension_config": turns}]},
    )
    return typed(
        "envoy.load_balancing_policies.override_host",
        f"{_POLICIES}.override_host.v3.OverrideHost",
        override_host_sources=[{"metadata": {"key": EXT_AUTHZ_METADATA, "path": [{"key": DESTINATION_HEADER}]}}],
        fallback_policy={"policies": [{"typed_extension_config": nothing}]},
    )


def _circuit_breakers() -> Json:
    limits = ("max_connections", "max_pending_requests", "max_requests", "max_retries")
    return {"thresholds": [dict.fromkeys(limits, MAX_PARALLEL)]}
