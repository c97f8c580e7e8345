"""``/v1/triage``: people's words on residuals; each change reviews everything again."""

from starlette.responses import Response

from control_plane.api.auth import Reader, SecurityAdmin, Services
from control_plane.api.bodies import Body, check_name, parsed
from control_plane.api.etags import Demand
from control_plane.api.lists import TriageList
from control_plane.api.objects import delete_object, get_object, list_objects, put_object, without_server_fields
from control_plane.api.paging import Paging
from control_plane.api.routing import DryRun, NamePath, body_of, changing, reading, router
from control_plane.api.shapes import Plan, Triage, TriageBody
from control_plane.records import Kind
from control_plane.services.exceptions import triage_spec

triage = router("triage")


@triage.get("/triage", response_model=TriageList, responses=reading(400))
def list_triage(house: Services, _actor: Reader, page: Paging) -> Response:
    """Every triage entry by name."""
    return list_objects(house.triage, Kind.TRIAGE, page)


@triage.get("/triage/{name}", response_model=Triage, responses=reading(404))
def get_triage_entry(house: Services, _actor: Reader, name: NamePath) -> Response:
    """One triage entry; its ETag is the version that a change must name."""
    return get_object(house.triage, Kind.TRIAGE, name)


@triage.put(
    "/triage/{name}",
    response_model=Triage | Plan,
    responses={201: {"model": Triage, "description": "Created"}, **changing()},
    openapi_extra=body_of(TriageBody),
)
def put_triage_entry(
    house: Services, actor: SecurityAdmin, name: NamePath, demand: Demand, document: Body, dry_run: DryRun = False
) -> Response:
    """Create or replace a triage entry."""
    body = parsed(TriageBody, without_server_fields(document))
    check_name(body.metadata.name, name)
    spec = body.spec.model_dump(mode="json", exclude_none=True)
    spec = triage_spec(name, spec, today=house.facts.current().today)
    return put_object(house.triage, Kind.TRIAGE, name, spec, demand, actor, is_dry_run=dry_run)


@triage.delete(
    "/triage/{name}",
    response_model=None,
    responses={200: {"model": Plan}, 204: {"description": "Deleted"}, **changing()},
)
def delete_triage_entry(
    house: Services, actor: SecurityAdmin, name: NamePath, demand: Demand, dry_run: DryRun = False
) -> Response:
    """Delete a triage entry."""
    return delete_object(house.triage, name, demand, actor, is_dry_run=dry_run)
