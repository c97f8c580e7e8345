"""What a route takes: what its engines can be asked for, and no field that reaches a closed path. Pure."""

from collections.abc import Mapping

from fleet.snapshot import ClosedPath, GatewayArm, GatewayRoute
from gateway.closed_fields import MULTIMODAL, ClosedField, closed_field
from gateway.paths import Operation
from gateway.refusals import Reason, Refused, quoted, refuse

_SERVED_UNSAID = frozenset({Operation.CHAT, Operation.COMPLETION, Operation.EMBEDDING})
"""What every arm is asked for that does not say what its engine has."""


def route_for(
    route: GatewayRoute, operation: Operation, document: Mapping[str, object], tenant: str
) -> GatewayRoute | Refused:
    """The route with the arms that serve the operation, or why this request can't go there."""
    if route.closed_paths and (closed := _closed(route, operation, document, tenant)):
        return closed
    arms = [arm for arm in route.arms if _serves(arm, operation)]
    if len(arms) == len(route.arms):
        return route
    if arms:
        return route.model_copy(update={"arms": tuple(arms)})
    served = ", ".join(word for word in Operation if any(_serves(arm, word) for arm in route.arms))
    message = f"The model {quoted(route.model)} is not served at this path; it takes requests of the kinds {served}."
    return refuse(Reason.NOT_SERVED, message, param="model", tenant=tenant, model=route.model)


def _serves(arm: GatewayArm, operation: Operation) -> bool:
    return operation in arm.serves if arm.serves else operation in _SERVED_UNSAID


def _closed(route: GatewayRoute, operation: Operation, document: Mapping[str, object], tenant: str) -> Refused | None:
    closed: dict[str, ClosedPath] = {}
    for stated in route.closed_paths:
        closed.setdefault(stated.path, stated)
    found = _field(operation, document, closed)
    if found is None:
        return None
    reason = closed[found.path]
    message = (
        f"The model {quoted(route.model)} does not take the field {found.pointer} for now (reference "
        f"{reason.reference}); send the request without it."
    )
    return refuse(Reason.CLOSED_FIELD, message, param=found.pointer, tenant=tenant, model=route.model, closed=reason)


def _field(
    operation: Operation, document: Mapping[str, object], closed: Mapping[str, ClosedPath]
) -> ClosedField | None:
    if operation is not Operation.TRANSCRIPTION:
        return closed_field(document, closed)
    # The words of an upload mean something else: its format is that of a text.
    return ClosedField("/file", MULTIMODAL) if MULTIMODAL in closed else None
