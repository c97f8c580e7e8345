"""How waivers, triage entries and tenants cross the API: they share their whole life."""

from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.etags import etag_of
from control_plane.api.paging import Page, listing
from control_plane.records import Actor, Document, Kind, StoredObject
from control_plane.services.objects import ObjectOutcome, ObjectService
from control_plane.services.preconditions import Precondition

API_VERSION = "enginehouse.dev/v1"


def list_objects(service: ObjectService, kind: Kind, page: Page) -> Response:
    """A page of them, by name."""
    items, has_more = page.cut(service.page(after=page.after, limit=page.limit))
    token = page.token(items[-1].name) if has_more else None
    return answer(listing(kind.value, [document_of(kind, item) for item in items], token))


def get_object(service: ObjectService, kind: Kind, name: str) -> Response:
    """One of them."""
    stored = service.get(name)
    return answer(document_of(kind, stored), etag=etag_of(stored.generation))


def put_object(
    service: ObjectService,
    kind: Kind,
    name: str,
    spec: Document,
    demand: Precondition,
    actor: Actor,
    *,
    is_dry_run: bool,
) -> Response:
    """Create or replace one of them."""
    outcome = service.put(name, spec, demand, actor, is_dry_run=is_dry_run)
    if is_dry_run or outcome.stored is None:
        return answer(plan_of(name, outcome))
    status = 201 if outcome.verb == "create" else 200
    return answer(document_of(kind, outcome.stored), status=status, etag=etag_of(outcome.stored.generation))


def delete_object(
    service: ObjectService, name: str, demand: Precondition, actor: Actor, *, is_dry_run: bool
) -> Response:
    """Delete one of them."""
    outcome = service.delete(name, demand, actor, is_dry_run=is_dry_run)
    return answer(plan_of(name, outcome)) if is_dry_run else Response(status_code=204)


def document_of(kind: Kind, stored: StoredObject) -> Document:
    """A stored object as it crosses the API."""
    metadata = {
        "name": stored.name,
        "generation": stored.generation,
        "creationTimestamp": stored.created,
        "updateTimestamp": stored.updated,
    }
    return {"apiVersion": API_VERSION, "kind": kind.value, "metadata": metadata, "spec": stored.spec}


def without_server_fields(document: Document) -> Document:
    """What a client means when it sends back what it read."""
    plain = {key: value for key, value in document.items() if key != "status"}
    metadata = plain.get("metadata")
    written = ("generation", "creationTimestamp", "updateTimestamp")
    if isinstance(metadata, dict):
        plain["metadata"] = {key: value for key, value in metadata.items() if key not in written}
    return plain


def plan_of(name: str, outcome: ObjectOutcome) -> Document:
    """What a dry run answers with."""
    changes = [item.document() for item in outcome.differences]
    plan = {"apiVersion": API_VERSION, "kind": "Plan", "action": outcome.verb, "name": name}
    return plan | {"refused": False, "changes": changes, "violations": [], "identity": None, "facts": None}
