"""Envoy's gRPC access log: how each request ended, in batches, for what has to be settled then."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from gateway.ext_authz import TICKET_HEADER
from gateway.http2.grpc_calls import Call, CallHandler
from gateway.http2.message_types import message_types
from gateway.shown import shown

METHOD = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"
DECISION_NAMESPACE = "envoy.filters.http.ext_authz"

TYPES = message_types(
    "gateway.access_log",
    """
    message StreamAccessLogsMessage
        HTTPAccessLogEntries http_logs 2
    message HTTPAccessLogEntries
        HTTPAccessLogEntry[] log_entry 1
    message HTTPAccessLogEntry
        AccessLogCommon common_properties 1
        HTTPRequestProperties request 3
        HTTPResponseProperties response 4
    message AccessLogCommon
        Time start_time 5
        Time time_to_last_rx_byte 6
        Time time_to_first_upstream_rx_byte 9
        Time time_to_first_downstream_tx_byte 11
        Address upstream_remote_address 13
        ResponseFlags response_flags 16
        Metadata metadata 17
        Time duration 23
        uint32 upstream_request_attempt_count 24
        bool intermediate_log_entry 27
    message Time
        int64 seconds 1
        int32 nanos 2
    message Address
        SocketAddress socket_address 1
    message SocketAddress
        string address 2
        uint32 port_value 3
    message Metadata
        Struct{} filter_metadata 1
    message HTTPRequestProperties
        string request_id 9
        uint64 request_body_bytes 12
    message HTTPResponseProperties
        Number response_code 1
        uint64 response_body_bytes 3
        string response_code_details 6
    message Number
        uint32 value 1
    message Unauthorized
        int32 reason 1
    message ResponseFlags
        bool LH 1
        bool UH 2
        bool UT 3
        bool LR 4
        bool UR 5
        bool UF 6
        bool UC 7
        bool UO 8
        bool NR 9
        bool DI 10
        bool FI 11
        bool RL 12
        Unauthorized UAEX 13
        bool RLSE 14
        bool DC 15
        bool URX 16
        bool SI 17
        bool IH 18
        bool DPE 19
        bool UMSDR 20
        bool RFCF 21
        bool NFCF 22
        bool DT 23
        bool UPE 24
        bool NC 25
        bool OM 26
        bool DF 27
        bool DR 28
    """,
)
"""The fields of the flags have the short names that Envoy's text log writes."""

MetadataValue = str | float | bool
_CLIENT_LEFT = frozenset(("DC", "DR"))


class EndedRequest(NamedTuple):
    """One request that is over, as the proxy saw it."""

    request_id: str
    ticket: str
    """What the decision gave it; empty = the decision let nothing through."""
    status: int
    """0 = no response had begun."""
    flags: tuple[str, ...]
    """Envoy's short words: ``DC`` the client left, ``UC`` the engine cut the connection."""
    details: str
    request_bytes: int
    response_bytes: int
    started_unix_seconds: float
    duration_seconds: float | None
    """``None`` = the proxy did not say; the same in the two below."""
    received_seconds: float | None
    """From the start to the last byte of the request."""
    first_byte_seconds: float | None
    """From the start to the first byte that the engine sent."""
    endpoint: str
    """``ip:port`` of the engine; empty = none was reached."""
    attempts: int
    metadata: Mapping[str, Mapping[str, MetadataValue]]
    """What filters left, by namespace: usage, count of chunks."""

    def __repr__(self) -> str:
        """Neither the ticket nor what filters left."""
        return shown(self, "request_id", "status", "flags", "details", "endpoint", "attempts")

    @property
    def client_left(self) -> bool:
        """The client went away before the end."""
        return not _CLIENT_LEFT.isdisjoint(self.flags)


class AccessLogReceiver:
    """Takes the log; ``open`` is the gRPC method. Nothing that an entry holds ends the call."""

    def __init__(
        self,
        on_batch: Callable[[Sequence[EndedRequest]], None],
        *,
        on_running: Callable[[Sequence[str]], None] = lambda _: None,
        namespaces: Collection[str],
        on_failure: Callable[[], None],
    ) -> None:
        """``namespaces`` of the metadata are kept; ``on_failure`` is called where one of the others has raised.

        ``on_running`` gets the tickets of requests that go on.
        """
        self._on_batch = on_batch
        self._on_running = on_running
        self._namespaces = frozenset(namespaces)
        self._on_failure = on_failure
        self.entries = 0
        self.malformed = 0

    def open(self, call: Call) -> CallHandler:
        """Take the call that one thread of the proxy keeps open."""
        return _Stream(call, self)

    def receive(self, data: bytes) -> None:
        """One message of many entries."""
        try:
            message: Any = TYPES["StreamAccessLogsMessage"].FromString(data)
        except DecodeError:
            self.malformed += 1
            return
        running, ended = [], []
        for entry in message.http_logs.log_entry:
            if entry.common_properties.intermediate_log_entry:
                running.append(_ticket(entry))
            elif (one := self._ended(entry)) is not None:
                ended.append(one)
        self.entries += len(ended)
        try:
            if running:
                self._on_running(running)
            if ended:
                self._on_batch(ended)
        except Exception:
            self._on_failure()

    def _ended(self, entry: Any) -> EndedRequest | None:  # noqa: ANN401 - the class is built at run time
        """``None`` = not to be read."""
        try:
            return _read(entry, self._namespaces)
        except (ValueError, OverflowError):
            self.malformed += 1
            return None


class _Stream:
    """One call, open for as long as the proxy runs."""

    def __init__(self, call: Call, receiver: AccessLogReceiver) -> None:
        self._call = call
        self._receiver = receiver

    def message(self, data: bytes) -> None:
        self._receiver.receive(data)

    def half_closed(self) -> None:
        self._call.send(b"")
        self._call.finish()

    def writable(self) -> None:
        """Nothing waits for it."""

    def closed(self) -> None:
        """Nothing is kept."""


def _read(entry: Any, namespaces: Collection[str]) -> EndedRequest:  # noqa: ANN401 - the class is built at run time
    common, request, response = entry.common_properties, entry.request, entry.response
    spaces = common.metadata.filter_metadata
    metadata = {name: _plain(spaces[name]) for name in spaces if name in namespaces}
    return EndedRequest(
        request_id=request.request_id,
        ticket=_ticket(entry),
        status=response.response_code.value,
        flags=tuple(flag.name for flag, _ in common.response_flags.ListFields()),
        details=response.response_code_details,
        request_bytes=request.request_body_bytes,
        response_bytes=response.response_body_bytes,
        started_unix_seconds=_seconds(common, "start_time") or 0.0,
        duration_seconds=_seconds(common, "duration"),
        received_seconds=_seconds(common, "time_to_last_rx_byte"),
        first_byte_seconds=_seconds(common, "time_to_first_upstream_rx_byte"),
        endpoint=_endpoint(common.upstream_remote_address.socket_address),
        attempts=common.upstream_request_attempt_count,
        metadata=metadata,
    )


def _ticket(entry: Any) -> str:  # noqa: ANN401 - the class is built at run time
    spaces = entry.common_properties.metadata.filter_metadata
    decided = spaces[DECISION_NAMESPACE].fields if DECISION_NAMESPACE in spaces else {}
    return decided[TICKET_HEADER].string_value if TICKET_HEADER in decided else ""


def _seconds(common: Any, name: str) -> float | None:  # noqa: ANN401 - the class is built at run time
    if not common.HasField(name):
        return None
    time = getattr(common, name)
    return float(time.seconds + time.nanos / 1e9)


def _endpoint(address: Any) -> str:  # noqa: ANN401 - the class is built at run time
    if not address.address:
        return ""
    host = f"[{address.address}]" if ":" in address.address else address.address
    return f"{host}:{address.port_value}"


def _plain(struct: Any) -> dict[str, MetadataValue]:  # noqa: ANN401 - the class is built at run time
    """Texts, numbers and truths; lists and objects are left out, and so are numbers that are none."""
    found: dict[str, MetadataValue] = {}
    for name, value in struct.fields.items():
        kind = value.WhichOneof("kind")
        if kind in {"string_value", "bool_value"}:
            found[name] = getattr(value, kind)
        elif kind == "number_value" and math.isfinite(value.number_value):
            found[name] = value.number_value
    return found
