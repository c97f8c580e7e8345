"""The standard health service of gRPC, as the Gateway API asks it of an endpoint picker."""

import asyncio
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

from google.protobuf.message import DecodeError

from gateway.http2.grpc_calls import Call, CallHandler, CallRefused, Method, unary
from gateway.http2.grpc_status import Status
from gateway.http2.message_types import message_types

LIVENESS = "liveness"
READINESS = "readiness"
POLL_SECONDS = 1.0

_TYPES = message_types(
    "gateway.health",
    """
    message HealthCheckRequest
        string service 1
    message HealthCheckResponse
        int32 status 1
    """,
)


class Serving(IntEnum):
    """What is said of a service."""

    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


Checks = Mapping[str, Callable[[], bool]]
"""Name of a service -> whether it serves now; read from what is known already, without waiting."""


def health_methods(checks: Checks) -> dict[str, Method]:
    """The methods of the service; the empty name asks whether all of it serves."""

    def check(data: bytes) -> bytes:
        state = _state(checks, _service(data))
        if state is Serving.SERVICE_UNKNOWN:
            raise CallRefused(Status.NOT_FOUND, "there is no such service here")
        return _response(state)

    def watch(call: Call) -> CallHandler:
        return _Watch(call, checks)

    return {"/grpc.health.v1.Health/Check": unary(check), "/grpc.health.v1.Health/Watch": watch}


class _Watch:
    """Says how a service is, and again whenever that changes."""

    def __init__(self, call: Call, checks: Checks) -> None:
        self._call = call
        self._checks = checks
        self._name: str | None = None
        self._said: Serving | None = None
        self._timer: asyncio.TimerHandle | None = None

    def message(self, data: bytes) -> None:
        if self._name is not None:
            raise CallRefused(Status.INVALID_ARGUMENT, "this method takes one message")
        self._name = _service(data)
        self._look()

    def half_closed(self) -> None:
        """The answers go on."""

    def writable(self) -> None:
        """The next look says how it is then."""

    def closed(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        state = _state(self._checks, self._name or "")
        if state is not self._said and not self._call.is_blocked:
            self._said = state
            self._call.send(_response(state))
        self._timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._look)


def _state(checks: Checks, name: str) -> Serving:
    if not name:
        return Serving.SERVING if all(check() for check in checks.values()) else Serving.NOT_SERVING
    check = checks.get(name)
    if check is None:
        return Serving.SERVICE_UNKNOWN
    return Serving.SERVING if check() else Serving.NOT_SERVING


def _service(data: bytes) -> str:
    try:
        message: Any = _TYPES["HealthCheckRequest"].FromString(data)
    except DecodeError:
        raise CallRefused(Status.INVALID_ARGUMENT, "the message can't be read") from None
    return str(message.service)


def _response(state: Serving) -> bytes:
    message: Any = _TYPES["HealthCheckResponse"](status=state.value)
    return bytes(message.SerializeToString())
