"""Which paths go where: those of engines to the guard or straight to them, the models to the decision service."""

from gateway.envoy_clusters import (
    DECISION_CLUSTER,
    ENGINES_CLUSTER,
    EXT_AUTHZ_METADATA,
    GUARD_CLUSTER,
    SOCKETS_CLUSTER,
)
from gateway.envoy_lua import with_script
from gateway.envoy_types import Json, message, seconds
from gateway.ext_authz import MAX_BODY_BYTES, PIN_HEADER, TICKET_HEADER, UNGUARDED_HEADER, USAGE_WHOLE
from gateway.paths import CHAT_SOCKET_PATH, ENGINE_PATHS, MODELS_PATH, REALTIME_PATH
from gateway.router import MAX_TRIES

STREAM_IDLE_SECONDS = 600.0
"""Without a byte either way; a long answer that is not streamed sends none until its end."""
MODELS_SECONDS = 5.0

HIDDEN_FROM_ENGINES = (
    "authorization",
    "proxy-authorization",
    "api-key",
    "x-api-key",
    "cookie",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-envoy-internal",
    "x-envoy-external-address",
    "x-data-parallel-rank",
    "x-data-parallel-host-port",
    "x-prefiller-host-port",
    "x-prefiller-url",
    "x-smg-target-worker",
    PIN_HEADER,
)
"""Credentials, the client's address, what picks a rank of vLLM or an engine behind a router's sidecar, or an arm."""

_EXT_AUTHZ = "envoy.filters.http.ext_authz"


def route_configuration() -> Json:
    """The one route table; the model in the body decides the rest."""
    return {
        "name": "public",
        "virtual_hosts": [
            {
                "name": "public",
                "domains": ["*"],
                "request_body_buffer_limit": MAX_BODY_BYTES,
                "routes": [
                    _straight_to_engines("whole answers", {"string_match": {"exact": USAGE_WHOLE}}, USAGE_WHOLE),
                    _straight_to_engines("unguarded", {"present_match": True}),
                    *(_to_guard(path) for path in ENGINE_PATHS),
                    _to_sockets(CHAT_SOCKET_PATH),
                    _to_sockets(REALTIME_PATH),
                    _to_decision({"path": MODELS_PATH}),
                    _to_decision({"prefix": f"{MODELS_PATH}/"}),
                    {"name": "nowhere", "match": {"prefix": "/"}, "direct_response": {"status": 404}},
                ],
            }
        ],
    }


def _straight_to_engines(name: str, value: Json, usage: str = "") -> Json:
    """For what the decision lets go without the guard; before the decision this matches nothing.

    The decision knows the paths of engines, and says the word that is asked for here about no other path.
    """
    unguarded = {
        "filter": EXT_AUTHZ_METADATA,
        "path": [{"key": UNGUARDED_HEADER}],
        "value": value,
    }
    return {
        "name": name,
        "match": {"prefix": "/", "dynamic_metadata": [unguarded]},
        "request_headers_to_remove": [*HIDDEN_FROM_ENGINES, TICKET_HEADER],
        "route": {
            "cluster": ENGINES_CLUSTER,
            "timeout": seconds(0),
            "idle_timeout": seconds(STREAM_IDLE_SECONDS),
            "retry_policy": {
                "retry_on": "connect-failure,reset-before-request,retriable-status-codes",
                "retriable_status_codes": [503],
                "num_retries": MAX_TRIES - 1,
            },
        },
        "typed_per_filter_config": with_script(usage),
    }


def _to_guard(path: str) -> Json:
    return {
        "name": path,
        "match": {"path": path},
        "request_headers_to_remove": list(HIDDEN_FROM_ENGINES),
        "route": {
            "cluster": GUARD_CLUSTER,
            "timeout": seconds(0),  # a stream may last
            "idle_timeout": seconds(STREAM_IDLE_SECONDS),
            # Only what the guard has not seen is tried again: a ticket counts once.
            "retry_policy": {"retry_on": "connect-failure", "num_retries": MAX_TRIES - 1},
        },
    }


def _to_sockets(path: str) -> Json:
    """Where connections are upgraded; of a chat's the key goes along, since each turn is asked for with it."""
    return {
        "name": path,
        "match": {"path": path},
        "route": {
            "cluster": SOCKETS_CLUSTER,
            "timeout": seconds(0),
            "idle_timeout": seconds(STREAM_IDLE_SECONDS),
            "upgrade_configs": [{"upgrade_type": "websocket"}],
        },
    }


def _to_decision(match: Json) -> Json:
    """The decision service answers by itself, after the same check of the key."""
    return {
        "name": MODELS_PATH,
        "match": match,
        "route": {"cluster": DECISION_CLUSTER, "timeout": seconds(MODELS_SECONDS)},
        "typed_per_filter_config": {
            _EXT_AUTHZ: message("envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute", disabled=True)
        },
    }
