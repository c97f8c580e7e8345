"""Where Envoy connects to: the decision service, the guard, and the engines."""

from collections.abc import Sequence
from pathlib import Path

from gateway.engine_connections import CONNECT_SECONDS, IDLE_SECONDS
from gateway.envoy_types import Json, message, seconds, typed
from gateway.ext_authz import DESTINATION_HEADER, WORKER_HEADER

DECISION_CLUSTER = "decision"
GUARD_CLUSTER = "guard"
SOCKETS_CLUSTER = "websockets"
ACCESS_LOG_CLUSTER = "access_log"
ENGINES_CLUSTER = "engines"
EXT_AUTHZ_METADATA = "envoy.filters.http.ext_authz"
GATEWAY_METADATA = "gateway"

OWN_IDLE_SECONDS = 30.0
"""Connections to the gateway's own sockets after a burst; Envoy's default keeps each for an hour."""
MAX_PARALLEL = 65_536
"""Engines queue and reject by themselves; Envoy's default of 1,024 would come first."""

_DEAD_WORKERS: Json = {
    "split_external_local_origin_errors": True,
    "consecutive_local_origin_failure": 1,
    "consecutive_5xx": MAX_PARALLEL,
    "consecutive_gateway_failure": MAX_PARALLEL,
    "interval": seconds(0.5),
    "base_ejection_time": seconds(0.5),
    "max_ejection_time": seconds(1),
    "max_ejection_percent": 100,
}
"""Whether a socket can be connected to; what a worker answers is no reason. When all are out, all are asked."""

_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_POLICIES = "envoy.extensions.load_balancing_policies"


def decision_cluster(socket_paths: Sequence[Path]) -> Json:
    """The decision service, on a Unix socket of each worker; one that died is left alone for a moment."""
    cluster = _at_sockets(DECISION_CLUSTER, socket_paths)
    if len(socket_paths) == 1:
        return cluster
    return {**cluster, "lb_policy": "LEAST_REQUEST", "outlier_detection": _DEAD_WORKERS}


def guard_cluster(socket_paths: Sequence[Path]) -> Json:
    """The guards on their Unix sockets, which pass requests on to the engines."""
    return _of_the_worker_that_decided(_at_sockets(GUARD_CLUSTER, socket_paths), len(socket_paths))


def sockets_cluster(socket_paths: Sequence[Path]) -> Json:
    """The services that end WebSocket connections, on their Unix sockets."""
    return _of_the_worker_that_decided(_at_sockets(SOCKETS_CLUSTER, socket_paths), len(socket_paths))


def access_log_name(number: int) -> str:
    """The cluster of one worker's access log service."""
    return f"{ACCESS_LOG_CLUSTER}-{number}" if number else ACCESS_LOG_CLUSTER


def access_log_cluster(number: int, socket_path: Path) -> Json:
    """The access log service of one worker on its Unix socket, which speaks HTTP/2."""
    http2 = message(_HTTP_OPTIONS, explicit_http_config={"http2_protocol_options": {}})
    cluster = _at_sockets(access_log_name(number), [socket_path])
    return {**cluster, "typed_extension_protocol_options": {_HTTP_OPTIONS: http2}}


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
        "load_balancing_policy": {"policies": [{"typed_extension_config": _decided_host(DESTINATION_HEADER)}]},
    }


def _of_the_worker_that_decided(cluster: Json, workers: int) -> Json:
    """Who admitted a request has what belongs to it; another worker would not know it."""
    if workers == 1:
        return cluster
    policy = {"policies": [{"typed_extension_config": _decided_host(WORKER_HEADER)}]}
    return {**cluster, "load_balancing_policy": policy}


def _at_sockets(name: str, paths: Sequence[Path]) -> Json:
    endpoints = [{"endpoint": {"address": {"pipe": {"path": str(path)}}}} for path in paths]
    options = message(
        _HTTP_OPTIONS,
        explicit_http_config={"http_protocol_options": {}},
        common_http_protocol_options={"idle_timeout": seconds(OWN_IDLE_SECONDS)},
    )
    return {
        "name": name,
        "type": "STATIC",
        "typed_extension_protocol_options": {_HTTP_OPTIONS: options},
        "connect_timeout": seconds(CONNECT_SECONDS),
        "circuit_breakers": _circuit_breakers(),
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    }


def _decided_host(header: str) -> Json:
    """The endpoints that the decision named in a header, in its order, and nothing else.

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
        override_host_sources=[{"metadata": {"key": EXT_AUTHZ_METADATA, "path": [{"key": header}]}}],
        fallback_policy={"policies": [{"typed_extension_config": nothing}]},
    )


def _circuit_breakers() -> Json:
    limits = ("max_connections", "max_pending_requests", "max_requests", "max_retries")
    return {"thresholds": [dict.fromkeys(limits, MAX_PARALLEL)]}
