"""What Envoy says about requests: a line each on stdout, and to the gateway how they run and how they ended."""

from collections.abc import Sequence

from gateway.envoy_clusters import EXT_AUTHZ_METADATA, GATEWAY_METADATA, access_log_name
from gateway.envoy_types import Json, seconds, typed
from gateway.ext_authz import (
    DEPLOYMENT_HEADER,
    DESTINATION_HEADER,
    IDENTITY_HEADER,
    MODEL_HEADER,
    TENANT_HEADER,
    TICKET_HEADER,
    UNGUARDED_HEADER,
    WORKER_HEADER,
)
from gateway.worker_sockets import WorkerSockets

HEARTBEAT_SECONDS = 10.0
"""How often Envoy says that a request still runs."""
FLUSH_SECONDS = 0.05
"""How long what is told to the gateway may wait for more; budgets are settled by it."""
BATCH_BYTES = 512 * 1024
"""What comes beyond it before it can be sent is dropped: room for the ends of many requests at once."""


def access_logs(workers: Sequence[WorkerSockets]) -> list[Json]:
    """The logs of the public listener."""
    if len(workers) == 1:
        return [_lines(), _told(0, _ENDS)]
    return [_lines(), *(_told(number, _ends_of(worker)) for number, worker in enumerate(workers))]


def access_log_options() -> Json:
    """What runs is told about now and then."""
    return {"access_log_flush_interval": seconds(HEARTBEAT_SECONDS)}


def _lines() -> Json:
    """One JSON line a request on stdout: no body, no key, no query."""

    def decided(name: str) -> str:
        return f"%DYNAMIC_METADATA({EXT_AUTHZ_METADATA}:{name})%"

    fields = {
        "time": "%START_TIME%",
        "request_id": "%REQ(X-REQUEST-ID)%",
        "method": "%REQ(:METHOD)%",
        "path": "%PATH(NQ:PATH):128%",
        "status": "%RESPONSE_CODE%",
        "details": "%RESPONSE_CODE_DETAILS%",
        "flags": "%RESPONSE_FLAGS%",
        "tenant": decided(TENANT_HEADER),
        "model": decided(MODEL_HEADER),
        "deployment": decided(DEPLOYMENT_HEADER),
        "identity": decided(IDENTITY_HEADER),
        "decided_endpoints": decided(DESTINATION_HEADER),
        "endpoint": f"%DYNAMIC_METADATA({GATEWAY_METADATA}:endpoint)%",
        "served_model": f"%DYNAMIC_METADATA({GATEWAY_METADATA}:served_model)%",
        "passed_to": "%UPSTREAM_HOST%",
        "tries": "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
        "received_bytes": "%BYTES_RECEIVED%",
        "sent_bytes": "%BYTES_SENT%",
        "duration_milliseconds": "%DURATION%",
        "first_byte_milliseconds": "%RESPONSE_DURATION%",
    }
    line = typed(
        "envoy.access_loggers.stdout",
        "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog",
        log_format={"json_format": fields},
    )
    return {**line, "filter": {"log_type_filter": {"types": ["DownstreamEnd"]}}}


def _told(worker: int, which: Json) -> Json:
    """What these requests hold is given back by this, in the worker that admitted them."""
    service = {
        "log_name": "ended",
        "transport_api_version": "V3",
        "grpc_service": {"envoy_grpc": {"cluster_name": access_log_name(worker)}},
        "buffer_flush_interval": seconds(FLUSH_SECONDS),
        "buffer_size_bytes": BATCH_BYTES,
    }
    log = typed(
        "envoy.access_loggers.http_grpc",
        "envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig",
        common_config=service,
    )
    return {**log, "filter": which}


def _decided(header: str, value: Json) -> Json:
    """What the decision said."""
    matcher = {"filter": EXT_AUTHZ_METADATA, "path": [{"key": header}], "value": value}
    return {"metadata_filter": {"matcher": matcher, "match_if_key_not_found": False}}


_PRESENT: Json = {"present_match": True}
_UNFINISHED: Json = {"and_filter": {"filters": [{"response_flag_filter": {}}, _decided(TICKET_HEADER, _PRESENT)]}}
"""Some of them never reached the guard, because their client left or nobody listened there."""
_ENDS: Json = {"or_filter": {"filters": [_decided(UNGUARDED_HEADER, _PRESENT), _UNFINISHED]}}
"""Of requests that no guard passes on each, of the others those that Envoy could not bring to their end."""


def _ends_of(worker: WorkerSockets) -> Json:
    own = [_decided(WORKER_HEADER, _exactly(str(path))) for path in (worker.guard, worker.websockets)]
    return {"and_filter": {"filters": [_ENDS, {"or_filter": {"filters": own}}]}}


def _exactly(text: str) -> Json:
    return {"string_match": {"exact": text}}
