"""A client's request as an engine gets it. Pure."""

from gateway.exchange import OF_A_CONNECTION, Headers
from gateway.http_protocol import HttpRequest
from gateway.targets import Target

_OWN_PREFIX = "x-gateway-"
_NOT_FOR_ENGINES = OF_A_CONNECTION | {"te", "host", "expect", "accept-encoding"}
"""An answer that is encoded can't be read: neither its usage nor what a filter looks for."""
_FOR_HOSTS = frozenset({"content-type", "accept"})
"""All that somebody else's engine gets of a client's headers: no names, no addresses, no traces."""
_AGENT = ("user-agent", "enginehouse")


def message_for(target: Target, request: HttpRequest, body: bytes, key: str | None) -> bytes:
    """Head and body; ``key`` = ours, for an engine that wants one."""
    path = target.path(request.target) if target.is_hosted else request.target
    lines = [f"{request.method} {path} HTTP/1.1", f"host: {target.authority}", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in _headers(target, request, key)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def _headers(target: Target, request: HttpRequest, key: str | None) -> Headers:
    if not target.is_hosted:
        return tuple(header for header in request.headers.items() if _is_for_engines(header[0]))
    kept = tuple(header for header in request.headers.items() if header[0] in _FOR_HOSTS)
    return (*kept, _AGENT, ("authorization", f"Bearer {key}"))


def _is_for_engines(name: str) -> bool:
    return name not in _NOT_FOR_ENGINES and not name.startswith(_OWN_PREFIX)
