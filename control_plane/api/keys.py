"""``/v1/keys``: API keys of tenants. A key is shown once, when it is made or rotated."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.auth import Operator, Reader, Services
from control_plane.api.bodies import Body, parsed
from control_plane.api.etags import Demand, etag_of
from control_plane.api.lists import KeyList
from control_plane.api.paging import Paging, listing
from control_plane.api.routing import DryRun, NamePath, body_of, changing, reading, router
from control_plane.api.shapes import Key, KeyBody, NewKey, Plan, RotationBody
from control_plane.records import Document, StoredKey
from control_plane.services.keys import KeyWish
from fleet.spec import Name

keys = router("keys")
TenantFilter = Annotated[Name | None, Query(description="Keys of this tenant alone.")]


@keys.get("/keys", response_model=KeyList, responses=reading(400))
def list_keys(house: Services, _actor: Reader, page: Paging, tenant: TenantFilter = None) -> Response:
    """Every key by name; the keys themselves are not kept."""
    items, has_more = page.cut(house.keys.page(after=page.after, limit=page.limit, tenant=tenant))
    token = page.token(items[-1].name) if has_more else None
    return answer(listing("Key", [_document(item) for item in items], token))


@keys.get("/keys/{name}", response_model=Key, responses=reading(404))
def get_key(house: Services, _actor: Reader, name: NamePath) -> Response:
    """One key; its ETag is the generation that a rotation must name."""
    key = house.keys.get(name)
    return answer(_document(key), etag=etag_of(key.generation))


@keys.post("/keys", status_code=201, response_model=NewKey, responses=changing(), openapi_extra=body_of(KeyBody))
def create_key(house: Services, actor: Operator, document: Body) -> Response:
    """Make a key: ``key`` of this answer is the only place where it is ever shown."""
    body = parsed(KeyBody, document)
    seconds = None if body.expires is None else _unix_seconds(body.expires)
    key, text = house.keys.create(KeyWish(body.tenant, body.name, seconds, body.models, body.pins_arms), actor)
    headers = {"Location": f"/v1/keys/{key.name}"}
    return answer(_document(key) | {"key": text}, status=201, etag=etag_of(key.generation), headers=headers)


@keys.post(
    "/keys/{name}/rotate",
    response_model=NewKey | Plan,
    responses=changing(),
    openapi_extra=body_of(RotationBody),
)
def rotate_key(
    house: Services, actor: Operator, name: NamePath, demand: Demand, document: Body, dry_run: DryRun = False
) -> Response:
    """Give a key its next generation, shown in this answer alone; the one before goes on for the overlap.

    Scopes and end stay. With an overlap of 0 seconds every earlier generation ends now.
    """
    overlap = parsed(RotationBody, document).overlap_seconds
    key, text = house.keys.rotate(name, overlap, demand, actor, is_dry_run=dry_run)
    if dry_run:
        return answer(_plan(name, "replace"))
    return answer(_document(key) | {"key": text}, etag=etag_of(key.generation))


@keys.delete(
    "/keys/{name}",
    response_model=None,
    responses={200: {"model": Plan}, 204: {"description": "Deleted"}, **changing()},
)
def delete_key(house: Services, actor: Operator, name: NamePath, demand: Demand, dry_run: DryRun = False) -> Response:
    """Delete a key: it stops working as soon as the gateways have read the next snapshot."""
    house.keys.delete(name, demand, actor, is_dry_run=dry_run)
    return answer(_plan(name, "delete")) if dry_run else Response(status_code=204)


def _plan(name: str, verb: str) -> Document:
    plan = {"apiVersion": "enginehouse.dev/v1", "kind": "Plan", "action": verb, "name": name}
    return plan | {"refused": False, "changes": [], "violations": [], "identity": None, "facts": None}


def _unix_seconds(moment: datetime) -> int:
    """A moment without a zone counts as UTC."""
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _moment(unix_seconds: int) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).isoformat().replace("+00:00", "Z")


def _document(key: StoredKey) -> Document:
    metadata = {
        "name": key.name,
        "generation": key.generation,
        "creationTimestamp": key.created,
        "updateTimestamp": key.updated,
    }
    spec: Document = {"tenant": key.tenant, "models": list(key.models), "pins_arms": key.pins_arms}
    if key.expires_unix_seconds is not None:
        spec["expires"] = _moment(key.expires_unix_seconds)
    ending = [
        {"generation": item.generation, "prefix": item.prefix, "ends": _moment(item.ends_unix_seconds)}
        for item in key.ending
    ]
    return {
        "apiVersion": "enginehouse.dev/v1",
        "kind": "Key",
        "metadata": metadata,
        "spec": spec,
        "status": {"prefix": key.prefix, "ending": ending},
    }
