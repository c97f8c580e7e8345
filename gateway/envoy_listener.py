"""The public door: what is removed from a request, who is asked about it, and what is logged."""

from collections.abc import Sequence

from gateway.envoy_access_log import access_log_options, access_logs
from gateway.envoy_clusters import DECISION_CLUSTER, GATEWAY_METADATA
from gateway.envoy_lua import lua_filter
from gateway.envoy_replies import local_replies
from gateway.envoy_routes import STREAM_IDLE_SECONDS, route_configuration
from gateway.envoy_types import Json, seconds, socket_address, typed
from gateway.ext_authz import (
    AUTHORIZE_PREFIX,
    ENDPOINT_HEADER,
    MAX_BODY_BYTES,
    PIN_HEADER,
    SERVED_MODEL_HEADER,
    TICKET_HEADER,
)
from gateway.worker_sockets import WorkerSockets

INTERNAL_PREFIXES = ("x-gateway-", "x-envoy-", "x-forwarded-")
"""Headers of these names are the gateway's own; a client's are gone before the first filter sees the request."""
INTERNAL_NAMES = ("tenant", "arm", "objective", "x-served-model", "x-inference-objective")
DECISION_SECONDS = 2.0
WORKER_RETRIES = 3
"""Of a decision, at another worker each, as far as there are others."""
HEAD_SECONDS = 10.0
REQUEST_SECONDS = 60.0
IDLE_SECONDS = 120.0
"""How long a connection may stay without a request; Envoy's own hour would let silent clients take every place."""
BUFFER_BYTES = 1024 * 1024
MAX_HTTP2_STREAMS = 100

_TRACE_HEADERS = ("traceparent", "tracestate", "x-request-id")
_ASKED_WITH = ("content-type", "content-encoding", "x-api-key", PIN_HEADER, *_TRACE_HEADERS)
_SESSION_PREFIX = "x-session-"
"""Which of them names a session is up to the route."""
_TOLD_TO_CLIENTS = ("content-type", "retry-after", "www-authenticate", "allow")


def public_listener(host: str, port: int, workers: Sequence[WorkerSockets]) -> Json:
    """The listener with its one chain of filters."""
    options = _connection_manager(workers)
    connection_manager = typed("envoy.filters.network.http_connection_manager", _MANAGER, **options)
    return {
        "name": "public",
        "address": socket_address(host, port),
        "per_connection_buffer_limit_bytes": BUFFER_BYTES,
        "filter_chains": [{"filters": [connection_manager]}],
    }


_MANAGER = "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


def _connection_manager(workers: Sequence[WorkerSockets]) -> Json:
    return {
        "stat_prefix": "public",
        "codec_type": "AUTO",
        "use_remote_address": True,
        "skip_xff_append": True,
        "normalize_path": True,
        "merge_slashes": True,
        "path_with_escaped_slashes_action": "REJECT_REQUEST",
        "common_http_protocol_options": {
            "headers_with_underscores_action": "DROP_HEADER",
            "idle_timeout": seconds(IDLE_SECONDS),
        },
        "http2_protocol_options": {"max_concurrent_streams": MAX_HTTP2_STREAMS},
        "request_headers_timeout": seconds(HEAD_SECONDS),
        "request_timeout": seconds(REQUEST_SECONDS),
        "stream_idle_timeout": seconds(STREAM_IDLE_SECONDS),
        "always_set_request_id_in_response": True,
        "early_header_mutation_extensions": [_without_internal_headers()],
        "local_reply_config": local_replies(),
        "access_log": access_logs(workers),
        "access_log_options": access_log_options(),
        "route_config": route_configuration(),
        "http_filters": [
            _ask_the_decision_service(len(workers)),
            _keep_the_endpoint_for_the_log(),
            lua_filter(),
            typed(
                "envoy.filters.http.router",
                "envoy.extensions.filters.http.router.v3.Router",
                suppress_envoy_headers=True,
            ),
        ],
    }


def _without_internal_headers() -> Json:
    removals: list[Json] = [{"remove_on_match": {"key_matcher": {"prefix": prefix}}} for prefix in INTERNAL_PREFIXES]
    removals += [{"remove": name} for name in INTERNAL_NAMES]
    return typed(
        "envoy.http.early_header_mutation.header_mutation",
        "envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation",
        mutations=removals,
    )


def _ask_the_decision_service(workers: int) -> Json:
    """No answer, a late one or a 5xx is a no; a worker that is dead is one only where there is no other."""
    retries = {"retry_policy": _another_worker()} if workers > 1 else {}
    told = [{"exact": name} for name in _TOLD_TO_CLIENTS]
    return typed(
        "envoy.filters.http.ext_authz",
        "envoy.extensions.filters.http.ext_authz.v3.ExtAuthz",
        failure_mode_allow=False,
        clear_route_cache=True,  # whether the guard passes it on is decided here
        status_on_error={"code": "ServiceUnavailable"},
        with_request_body={"max_request_bytes": MAX_BODY_BYTES, "allow_partial_message": False},
        allowed_headers={"patterns": [*({"exact": name} for name in _ASKED_WITH), {"prefix": _SESSION_PREFIX}]},
        http_service={
            "server_uri": {
                "uri": f"http://{DECISION_CLUSTER}",
                "cluster": DECISION_CLUSTER,
                "timeout": seconds(DECISION_SECONDS),
            },
            "path_prefix": AUTHORIZE_PREFIX,
            **retries,
            "authorization_response": {
                "allowed_upstream_headers": {"patterns": [{"exact": TICKET_HEADER}, {"exact": "traceparent"}]},
                "allowed_client_headers_on_success": {
                    "patterns": [{"prefix": "x-ratelimit-"}, {"exact": SERVED_MODEL_HEADER}]
                },
                "allowed_client_headers": {"patterns": [*told, {"prefix": "x-ratelimit-"}]},
                "dynamic_metadata_from_headers": {"patterns": [{"prefix": "x-gateway-"}]},
            },
        },
    )


def _another_worker() -> Json:
    """For a question that a worker died over; whatever it held died with it."""
    others = typed(
        "envoy.retry_host_predicates.previous_hosts",
        "envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate",
    )
    return {
        "retry_on": "connect-failure,reset",
        "num_retries": WORKER_RETRIES,
        # Envoy takes the longest pause for the time that one worker has as well: a busy one would be asked over again.
        "retry_back_off": {"base_interval": seconds(0.005), "max_interval": seconds(DECISION_SECONDS)},
        "retry_host_predicate": [others],
        "host_selection_retry_max_attempts": 8,
    }


def _keep_the_endpoint_for_the_log() -> Json:
    """Which engine answered is in the log, and not in the client's answer; which model did is in both."""
    kept = {"metadata_namespace": GATEWAY_METADATA, "key": "endpoint"}
    served = {"metadata_namespace": GATEWAY_METADATA, "key": "served_model"}
    return typed(
        "envoy.filters.http.header_to_metadata",
        "envoy.extensions.filters.http.header_to_metadata.v3.Config",
        response_rules=[
            {"header": ENDPOINT_HEADER, "on_header_present": kept, "remove": True},
            {"header": SERVED_MODEL_HEADER, "on_header_present": served},
        ],
    )
