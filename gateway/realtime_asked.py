"""What an engine's own WebSocket is opened for, and whether it may be. Pure."""

import json

from fleet.output_policy import NO_FILTER
from fleet.snapshot import GatewayRoute
from gateway.asked import Asked, Request, allowed_route, asked_of
from gateway.authentication import Caller
from gateway.index import SnapshotIndex
from gateway.paths import Operation, PublicPath
from gateway.refusals import Reason, Refused, quoted, refuse


def asked_at(path: PublicPath, index: SnapshotIndex, caller: Caller, request: Request) -> Asked | Refused:
    """What is asked for at a path: a session where it is an engine's WebSocket, else what the body says."""
    if path.is_socket:
        return session_asked(index, caller, request, path.model or "")
    return asked_of(index, caller, request, path.operation)


def session_asked(index: SnapshotIndex, caller: Caller, request: Request, model: str) -> Asked | Refused:
    """A session with a model, as a request without a prompt: it holds a place at its engine, and no tokens."""
    own = session_route(index, caller, model)
    if isinstance(own, Refused):
        return own
    document = {"model": model}
    asked = Request("POST", request.target, request.headers, json.dumps(document).encode())
    return Asked(asked, document, Operation.TOKENIZE, caller, own)


def session_route(index: SnapshotIndex, caller: Caller, model: str) -> GatewayRoute | Refused:
    """The route of a session with a model, or why its caller may have none."""
    route = allowed_route(index, caller, model)
    if isinstance(route, Refused):
        return route
    arms = tuple(arm for arm in route.arms if arm.hosted is None)
    if not _is_open(route) or not arms:
        message = f"The model {quoted(model)} has no WebSocket of its own; chats have one at /v1/chat/ws."
        return refuse(Reason.NOT_SERVED, message, param="model", tenant=caller.tenant.name, model=route.model)
    # Another model would be another engine with other words, and a copy of a session is none.
    return route.model_copy(update={"arms": arms, "fallbacks": (), "shadow": None, "is_guarded": True})


def _is_open(route: GatewayRoute) -> bool:
    """What can't be seen to in a session's words opens none."""
    return route.realtime and route.output_filter == NO_FILTER and not route.closed_paths and not route.salts_cache
