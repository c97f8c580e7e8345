"""Every "no" of the gateway: its reason, its status, and an error body in OpenAI's form."""

import json
from dataclasses import dataclass, field
from enum import StrEnum

from fleet.snapshot import ClosedPath

MAX_QUOTED_CHARS = 100


class Reason(StrEnum):
    """Why a request is refused; the value is the error's ``code`` and the metric's label."""

    NO_SNAPSHOT = "gateway_not_ready"
    MISSING_KEY = "missing_api_key"
    INVALID_KEY = "invalid_api_key"
    EXPIRED_KEY = "expired_api_key"
    INVALID_TOKEN = "invalid_token"
    UNKNOWN_PATH = "unknown_path"
    WRONG_METHOD = "method_not_allowed"
    BODY_TOO_LARGE = "body_too_large"
    ENCODED_BODY = "unsupported_content_encoding"
    BAD_JSON = "invalid_json"
    BAD_FORM = "invalid_form"
    MISSING_MODEL = "missing_model"
    MODEL_NOT_FOUND = "model_not_found"
    ARM_NOT_ALLOWED = "arm_not_allowed"
    BAD_FIELD = "invalid_value"
    CLOSED_FIELD = "closed_field"
    NOT_SERVED = "operation_not_served"
    TOO_MANY_REQUESTS = "rate_limit_exceeded"
    QUOTA = "insufficient_quota"
    FILTER_UNAVAILABLE = "output_filter_unavailable"
    BLOCKED = "content_filter"
    NO_ENDPOINT = "no_endpoint"
    QUEUE_FULL = "queue_full"
    QUEUE_TIMEOUT = "queue_timeout"
    NOT_ADMITTED = "not_admitted"
    ENGINE_LOST = "engine_lost"
    ENGINE_LATE = "engine_timeout"
    WEBSOCKET_ONLY = "websocket_only"
    CANCELLED = "cancelled"
    INTERNAL = "internal_error"


_STATUS = {
    Reason.NO_SNAPSHOT: 503,
    Reason.MISSING_KEY: 401,
    Reason.INVALID_KEY: 401,
    Reason.EXPIRED_KEY: 401,
    Reason.INVALID_TOKEN: 401,
    Reason.UNKNOWN_PATH: 404,
    Reason.WRONG_METHOD: 405,
    Reason.BODY_TOO_LARGE: 413,
    Reason.ENCODED_BODY: 415,
    Reason.BAD_JSON: 400,
    Reason.BAD_FORM: 400,
    Reason.MISSING_MODEL: 400,
    Reason.MODEL_NOT_FOUND: 404,
    Reason.ARM_NOT_ALLOWED: 403,
    Reason.BAD_FIELD: 400,
    Reason.CLOSED_FIELD: 400,
    Reason.NOT_SERVED: 404,
    Reason.TOO_MANY_REQUESTS: 429,
    Reason.QUOTA: 429,
    Reason.FILTER_UNAVAILABLE: 503,
    Reason.BLOCKED: 400,
    Reason.NO_ENDPOINT: 503,
    Reason.QUEUE_FULL: 429,
    Reason.QUEUE_TIMEOUT: 503,
    Reason.NOT_ADMITTED: 403,
    Reason.ENGINE_LOST: 502,
    Reason.ENGINE_LATE: 504,
    Reason.WEBSOCKET_ONLY: 426,
    Reason.CANCELLED: 499,
    Reason.INTERNAL: 503,
}


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that goes no further, and what its sender is told."""

    reason: Reason
    message: str = field(repr=False)
    body: bytes = field(repr=False)
    headers: tuple[tuple[str, str], ...] = ()
    tenant: str | None = None
    """``None`` = refused before the tenant was known."""
    model: str | None = None
    """``None`` = not a model of this tenant."""
    closed: ClosedPath | None = None
    """The closed path that a field of the request would have reached."""
    credential: tuple[str, str] | None = None
    """What kind of credential was refused and why, in words of this code."""

    @property
    def status(self) -> int:
        """The HTTP status for the client."""
        return _STATUS[self.reason]


def refuse(
    reason: Reason,
    message: str,
    *,
    param: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
    tenant: str | None = None,
    model: str | None = None,
    closed: ClosedPath | None = None,
) -> Refused:
    """A refusal with its error body; the message must hold nothing of the request but names of fields and models."""
    body = error_body(_STATUS[reason], message, code=reason.value, param=param)
    return Refused(reason, message, body, headers, tenant, model, closed)


def error_body(status: int, message: str, *, code: str, param: str | None = None) -> bytes:
    """The JSON that OpenAI's clients turn into their own exceptions."""
    error = {"message": message, "type": error_type(status), "param": param, "code": code}
    return json.dumps({"error": error}).encode()


def error_type(status: int) -> str:
    """OpenAI's word for the kind of error."""
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def quoted(name: str) -> str:
    """A name of the client's for a message: shortened, on one line."""
    shown = name if len(name) <= MAX_QUOTED_CHARS else name[:MAX_QUOTED_CHARS] + "..."
    return f"'{shown}'" if shown.isprintable() else ascii(shown)
