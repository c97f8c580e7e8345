"""What Envoy itself says to clients, in the form of the API that they asked: no engine, no decision, bad requests."""

from gateway.envoy_types import Json
from gateway.error_forms import ANTHROPIC_PATHS, anthropic_body
from gateway.ext_authz import MAX_BODY_BYTES, UNAVAILABLE_ON_THE_WIRE
from gateway.refusals import Reason, error_body

_DENIED_FLAG = "UAEX"
_NO_ENGINE_FLAGS = ("UH", "UF", "UC", "UR", "UO", "URX", "NC")
_JSON = "application/json"
_NOT_CHUNKED = "unsupported_transfer_encoding"
_OTHER = "The request could not be served."
_ANTHROPIC_TARGETS = f"({'|'.join(sorted(ANTHROPIC_PATHS))})([?].*)?"


def local_replies() -> Json:
    """The mappers, of which the first that matches counts, and the body for everything else."""
    size = f"The body is larger than {MAX_BODY_BYTES} bytes."
    return {
        "mappers": [
            {**_kept(_status("EQ", UNAVAILABLE_ON_THE_WIRE)), "status_code": 503},
            _kept(_status("LE", 499)),
            *_said(_denied(), 503, Reason.INTERNAL, "The gateway cannot decide now; the request was not passed on."),
            *_said(_flags(*_NO_ENGINE_FLAGS), 503, Reason.NO_ENDPOINT, "No engine could be reached for this request."),
            *_said(_status("EQ", 413), 413, Reason.BODY_TOO_LARGE, size),
            *_said(_status("EQ", 404), 404, Reason.UNKNOWN_PATH, "There is nothing at this path."),
            *_said(_status("EQ", 408), 408, "request_timeout", "The request was not sent in time."),
            *_said(_status("EQ", 431), 431, "headers_too_large", "The headers are too many or too large."),
            *_said(_status("EQ", 426), 426, "unsupported_http_version", "Requests are HTTP/1.1 or HTTP/2."),
            *_said(_status("EQ", 403), 403, "upgrade_refused", "No connection is upgraded here."),
            *_said(_status("EQ", 501), 400, _NOT_CHUNKED, "A body may be chunked, and nothing else."),
            *_said(_status("EQ", 504), 504, "engine_timeout", "The engine sent nothing for too long."),
            *_said(_status("LE", 499), 400, "malformed_request", "The request is malformed, or its path is not plain."),
            {"filter": _asks_anthropic(), "body_format_override": _text(anthropic_body(503, _OTHER).decode())},
        ],
        "body_format": _text(error_body(503, _OTHER, code="unavailable").decode()),
    }


def _kept(status: Json) -> Json:
    """A denial keeps the body of the decision service."""
    return {
        "filter": {"and_filter": {"filters": [_denied(), status]}},
        "body_format_override": _text("%LOCAL_REPLY_BODY%"),
    }


def _said(when: Json, status: int, code: str, text: str) -> tuple[Json, Json]:
    """One of Envoy's errors: in Anthropic's form where its messages are asked for, else in OpenAI's."""
    anthropic = {"and_filter": {"filters": [when, _asks_anthropic()]}}
    # Clients try again what is a server's fault, so a 501 about a header must not stay one.
    told = {"status_code": status} if code == _NOT_CHUNKED else {}
    return (
        {"filter": anthropic, **told, "body_format_override": _text(anthropic_body(status, text).decode())},
        {"filter": when, **told, "body_format_override": _text(error_body(status, text, code=str(code)).decode())},
    )


def _asks_anthropic() -> Json:
    matched = {"safe_regex": {"regex": _ANTHROPIC_TARGETS}}
    return {"header_filter": {"header": {"name": ":path", "string_match": matched}}}


def _text(text: str) -> Json:
    return {"text_format_source": {"inline_string": text}, "content_type": _JSON}


def _denied() -> Json:
    return _flags(_DENIED_FLAG)


def _flags(*flags: str) -> Json:
    return {"response_flag_filter": {"flags": list(flags)}}


def _status(operator: str, number: int) -> Json:
    value = {"default_value": number, "runtime_key": f"gateway.reply_{operator.lower()}_{number}"}
    return {"status_code_filter": {"comparison": {"op": operator, "value": value}}}
