"""What a request asks for: its path, its document, and the route that its caller may use. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fleet.snapshot import GatewayRoute
from gateway.authentication import Caller
from gateway.form_document import parse_form
from gateway.index import SnapshotIndex
from gateway.paths import CHAT_SOCKET_PATH, ENGINE_PATHS, MODELS_PATH, REALTIME_PATH, Operation, PublicPath, public_path
from gateway.plain_texts import plain_texts
from gateway.reach import Reach
from gateway.refusals import Reason, Refused, quoted, refuse
from gateway.request_document import BadDocument, parse_document
from gateway.route_limits import route_for
from gateway.shown import shown
from gateway.unserved_fields import unserved_field


class Request(NamedTuple):
    """A client's request; what it holds never shows in its ``repr``."""

    method: str
    target: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = b""
    reach: Reach | None = None
    """Where it can get to; ``None`` = to every engine."""

    def __repr__(self) -> str:
        """No more than the method."""
        return shown(self, "method")


class Asked(NamedTuple):
    """What a caller asks of a route; what the request holds never shows in its ``repr``."""

    request: Request
    document: Mapping[str, object]
    operation: Operation
    caller: Caller
    route: GatewayRoute
    texts: Sequence[str] | None = None
    """Of a chat that is nothing else; ``None`` = everything has to be looked for in the document."""

    def __repr__(self) -> str:
        """Who asks, and for what."""
        return shown(self, "operation", "caller", "route")


@dataclass(frozen=True, slots=True)
class Opened:
    """A WebSocket that may be opened; each request on it is decided about by itself."""

    tenant: str
    model: None = None


def asked_of(index: SnapshotIndex, caller: Caller, request: Request, operation: Operation) -> Asked | Refused:
    """What the request asks for, or why it may not."""
    document = _document(request, caller, operation)
    if isinstance(document, Refused):
        return document
    if (unserved := unserved_field(document, operation)) is not None:
        return refuse(Reason.BAD_FIELD, unserved.message, param=unserved.name, tenant=caller.tenant.name)
    allowed = allowed_route(index, caller, document.get("model"))
    if isinstance(allowed, Refused):
        return allowed
    route = route_for(allowed, operation, document, caller.tenant.name)
    if isinstance(route, Refused):
        return route
    return Asked(request, document, operation, caller, route, plain_texts(document))


def asked_instead(asked: Asked, route: GatewayRoute) -> Asked | None:
    """The same request to another route; ``None`` = that one does not take it."""
    taken = route_for(route, asked.operation, asked.document, asked.caller.tenant.name)
    return None if isinstance(taken, Refused) else asked._replace(route=taken)


def authorization_of(request: Request) -> str:
    """How the request says who asks: by the header ``Authorization``, or by Anthropic's ``x-api-key``."""
    key = request.headers.get("x-api-key")
    return request.headers.get("authorization", "" if key is None else f"Bearer {key}")


def path_of(request: Request, caller: Caller) -> PublicPath | Refused:
    """The path that the request names, by its one method."""
    path = public_path(request.target)
    if path is None:
        served = ", ".join((*ENGINE_PATHS, CHAT_SOCKET_PATH, REALTIME_PATH, MODELS_PATH))
        return refuse(
            Reason.UNKNOWN_PATH, f"There is nothing at this path; served are {served}.", tenant=caller.tenant.name
        )
    if request.method != path.method:
        message = f"This path takes {path.method} only."
        return refuse(Reason.WRONG_METHOD, message, headers=(("allow", path.method),), tenant=caller.tenant.name)
    return path


def _document(request: Request, caller: Caller, operation: Operation) -> Mapping[str, object] | Refused:
    tenant = caller.tenant.name
    if request.headers.get("content-encoding", "identity") != "identity":
        message = "The body must be sent uncompressed, without the header 'Content-Encoding'."
        return refuse(Reason.ENCODED_BODY, message, tenant=tenant)
    is_upload = operation is Operation.TRANSCRIPTION
    try:
        if is_upload:
            return parse_form(request.headers.get("content-type", ""), request.body)
        return parse_document(request.body)
    except BadDocument as error:
        if is_upload:
            return refuse(Reason.BAD_FORM, f"The body is not a form that can be read: {error}.", tenant=tenant)
        return refuse(Reason.BAD_JSON, f"The body is not valid JSON: {error}.", tenant=tenant)


def allowed_route(index: SnapshotIndex, caller: Caller, model: object) -> GatewayRoute | Refused:
    """The route of a model that the caller may ask for."""
    if not isinstance(model, str) or not model:
        message = "The field 'model' is missing or no text; name one of the models that GET /v1/models lists."
        return refuse(Reason.MISSING_MODEL, message, param="model", tenant=caller.tenant.name)
    tenant = caller.tenant.name
    route = index.routes.get((tenant, model))
    if route is None or not caller.key.admits(route.model):
        return model_not_found(caller, model)
    return route


def model_not_found(caller: Caller, model: str) -> Refused:
    """The same answer whether or not the model exists for others."""
    message = f"The model {quoted(model)} does not exist or you do not have access to it."
    return refuse(Reason.MODEL_NOT_FOUND, message, param="model", tenant=caller.tenant.name)
