"""``/v1/facts`` and ``/v1/audit-events``: what was known, and what was done."""

from typing import Annotated

from fastapi import Header, Query
from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.auth import Reader, Services
from control_plane.api.etags import matches_any
from control_plane.api.lists import AuditEventList, FactsBundle
from control_plane.api.paging import Paging, listing
from control_plane.api.routing import reading, router
from control_plane.errors import BadRequest
from control_plane.services.gateway_settings import LARGEST_INTEGER
from fleet.audit import ChainHead
from fleet.facts import Facts

facts = router("facts")
audit_events = router("audit-events")
After = Annotated[int, Query(ge=0, le=LARGEST_INTEGER, description="Events above this sequence: what is new.")]
IfNoneMatch = Annotated[str | None, Header(description="ETags that the client has.")]


@facts.get("/facts", response_model=FactsBundle, responses={304: {"description": "The client has them"}, **reading()})
def get_facts(house: Services, _actor: Reader, if_none_match: IfNoneMatch = None) -> Response:
    """Everything that reviews look at, as one bundle with its digest and its age."""
    current = house.facts.current()
    etag = f'"{current.digest}/{current.today}"'
    if matches_any(if_none_match, etag):
        return Response(status_code=304, headers={"ETag": etag})
    return Response(
        _bundle(current), media_type="application/json", headers={"ETag": etag, "Cache-Control": "no-store"}
    )


def _bundle(current: Facts) -> bytes:
    """Written by hand around the largest part, which is serialised once by pydantic's own writer."""
    head = answer(
        {
            "apiVersion": "enginehouse.dev/v1",
            "kind": "Facts",
            "digest": current.digest,
            "as_of": current.as_of,
            "catalogue_digest": current.catalogue_digest,
        }
    ).body
    return bytes(head)[:-1] + b',"facts":' + current.model_dump_json().encode() + b"}"


@audit_events.get("/audit-events:head", response_model=ChainHead, responses=reading())
def get_audit_head(house: Services, _actor: Reader) -> Response:
    """Where the chain ends now."""
    return answer(house.audit.head().model_dump(mode="json"))


@audit_events.get("/audit-events", response_model=AuditEventList, responses=reading(400))
def list_audit_events(house: Services, _actor: Reader, page: Paging, after: After = 0) -> Response:
    """The log in order: with every page and ``head`` the whole chain can be checked by whoever reads it."""
    if page.after and not page.after.isdecimal():
        raise BadRequest("page_token can't be read; send next_page_token of the page before, unchanged")
    events, head = house.audit.page(after=int(page.after or after), limit=page.limit)
    shown, has_more = page.cut(events)
    token = page.token(str(shown[-1].sequence)) if has_more else None
    documents = [event.model_dump(mode="json") for event in shown]
    return answer(listing("AuditEvent", documents, token) | {"head": head.model_dump(mode="json")})
