"""What the engines of an arm get in the place of the client's words: their name of the model, and what they take."""

from fleet.snapshot import GatewayArm
from gateway.asked import Asked
from gateway.cache_salt import members
from gateway.engine_priority import priority_member
from gateway.request_edits import RequestEdits, request_edits


def edits_for(asked: Asked, arm: GatewayArm, bound: int | None) -> RequestEdits:
    """The edits of a request for one arm; ``bound`` = the longest answer, where the client states none.

    Somebody else's engine gets no members that only our own engines know.
    """
    served = arm.hosted.model if arm.hosted else asked.route.model
    model = None if asked.document.get("model") == served else served
    more: dict[str, object] = {}
    if arm.hosted is None:
        more.update(members(asked, asked.route))
        more.update(priority_member(arm, asked.caller.tenant.priority, asked.document))
    return request_edits(asked.request.body, asked.document, asked.operation, bound, model=model, more=more)
