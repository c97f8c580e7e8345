"""What a request asks for: its path, its document, and the route that its caller may use. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.snapshot import GatewayRoute
from gateway.authentication import Caller
from gateway.index import SnapshotIndex
from gateway.paths import ENGINE_PATHS, MODELS_PATH, Operation, PublicPath, public_path
from gateway.refusals import Reason, Refused, quoted, refuse
from gateway.request_document import BadDocument, parse_document

_NO_FILTER = "none"


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request; what it holds never shows in its ``repr``."""

    method: str
    target: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    """By lower-case name."""
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller asks of a route."""

    request: Request = field(repr=False)
    document: Mapping[str, object] = field(repr=False)
    operation: Operation
    caller: Caller
    route: GatewayRoute


def asked_of(index: SnapshotIndex, caller: Caller, request: Request, operation: Operation) -> Asked | Refused:
    """What the request asks for, or why it may not."""
    document = _document(request, caller)
    if isinstance(document, Refused):
        return document
    route = _allowed_route(index, caller, document.get("model"))
    return route if isinstance(route, Refused) else Asked(request, document, operation, caller, route)


def path_of(request: Request, caller: Caller) -> PublicPath | Refused:
    """The path that the request names, by its one method."""
    path = public_path(request.target)
    if path is None:
        served = ", ".join((*ENGINE_PATHS, MODELS_PATH))
        return refuse(
            Reason.UNKNOWN_PATH, f"There is nothing at this path; served are {served}.", tenant=caller.tenant.name
        )
    if request.method != path.method:
        message = f"This path takes {path.method} only."
        return refuse(Reason.WRONG_METHOD, message, headers=(("allow", path.method),), tenant=caller.tenant.name)
    return path


def _document(request: Request, caller: Caller) -> Mapping[str, object] | Refused:
    if request.headers.get("content-encoding", "identity") != "identity":
        message = "The body must be sent uncompressed, without the header 'Content-Encoding'."
        return refuse(Reason.ENCODED_BODY, message, tenant=caller.tenant.name)
    try:
        return parse_document(request.body)
    except BadDocument as error:
        return refuse(Reason.BAD_JSON, f"The body is not valid JSON: {error}.", tenant=caller.tenant.name)


def _allowed_route(index: SnapshotIndex, caller: Caller, model: object) -> GatewayRoute | Refused:
    if not isinstance(model, str) or not model:
        message = "The field 'model' is missing or no text; name one of the models that GET /v1/models lists."
        return refuse(Reason.MISSING_MODEL, message, param="model", tenant=caller.tenant.name)
    tenant = caller.tenant.name
    route = index.routes.get((tenant, model))
    if route is None or not caller.key.admits(route.model):
        return model_not_found(caller, model)
    if route.output_filter != _NO_FILTER:
        message = (
            f"The model {quoted(model)} asks for the output filter {quoted(route.output_filter)}, not served here."
        )
        return refuse(Reason.FILTER_UNAVAILABLE, message, tenant=tenant, model=model)
    return route


def model_not_found(caller: Caller, model: str) -> Refused:
    """The same answer whether or not the model exists for others."""
    message = f"The model {quoted(model)} does not exist or you do not have access to it."
    return refuse(Reason.MODEL_NOT_FOUND, message, param="model", tenant=caller.tenant.name)
