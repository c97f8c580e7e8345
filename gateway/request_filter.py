"""The filter of a request: for its answer, and for its own texts where the policy asks for that."""

from fleet.output_policy import NO_FILTER
from gateway.answer_filter import AnswerFilter
from gateway.asked import Asked
from gateway.index import SnapshotIndex
from gateway.output_filter.json_spans import UnreadableAnswer
from gateway.paths import Operation
from gateway.prompt_text import prompt_tokens_given
from gateway.refusals import Reason, Refused, quoted, refuse

MAX_PARTS = 20_000
"""Commas and colons in a body; each of them may part two texts, and reading these takes a tenth of a second."""


def filter_for(index: SnapshotIndex, asked: Asked) -> AnswerFilter | Refused | None:
    """The filter of a request; ``None`` = its route has none. What can't be filtered goes no further.

    That is so for requests whatever the policy says of answers that can't be filtered: nothing has been answered yet.
    """
    tenant, route = asked.caller.tenant.name, asked.route
    if route.output_filter == NO_FILTER:
        return None
    found = index.filters.get(route.output_filter)
    if found is None:
        message = f"The output filter of the model {quoted(route.model)} can't be used; its operator can see why."
        return _refused(asked, Reason.FILTER_UNAVAILABLE, message)
    chosen = found.of(tenant, route.model, asked.document)
    return (_read(chosen, asked) if found.policy.filters_requests else None) or chosen


def _read(chosen: AnswerFilter, asked: Asked) -> Refused | None:
    body, is_form = asked.request.body, asked.operation is Operation.TRANSCRIPTION
    if not is_form and body.count(b",") + body.count(b":") > MAX_PARTS:
        return _refused(asked, Reason.BODY_TOO_LARGE, "The request has too many parts for the filter of its model.")
    if prompt_tokens_given(asked.document) is not None:
        message = f"The model {quoted(asked.route.model)} takes text alone: its filter can't read token ids."
        return _refused(asked, Reason.BAD_FIELD, message)
    try:
        blocked = chosen.read_request(body, is_form=is_form)
    except (UnreadableAnswer, ValueError):
        reason = Reason.BAD_FORM if is_form else Reason.BAD_JSON
        return _refused(asked, reason, "The request can't be read by the filter of its model.")
    if blocked is not None:
        return _refused(asked, Reason.BLOCKED, f"The request was refused by the filter of its model ({blocked}).")
    return None


def _refused(asked: Asked, reason: Reason, message: str) -> Refused:
    return refuse(reason, message, tenant=asked.caller.tenant.name, model=asked.route.model)
