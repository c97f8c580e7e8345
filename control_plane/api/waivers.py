"""``/v1/waivers``: exceptions that a security admin answers for; each change reviews everything again."""

from starlette.responses import Response

from control_plane.api.auth import Reader, SecurityAdmin, Services
from control_plane.api.bodies import Body, check_name, parsed
from control_plane.api.etags import Demand
from control_plane.api.lists import WaiverList
from control_plane.api.objects import delete_object, get_object, list_objects, put_object, without_server_fields
from control_plane.api.paging import Paging
from control_plane.api.routing import DryRun, NamePath, body_of, changing, reading, router
from control_plane.api.shapes import Plan, Waiver, WaiverBody
from control_plane.records import Kind
from control_plane.services.exceptions import waiver_spec

waivers = router("waivers")


@waivers.get("/waivers", response_model=WaiverList, responses=reading(400))
def list_waivers(house: Services, _actor: Reader, page: Paging) -> Response:
    """Every waiver by name."""
    return list_objects(house.waivers, Kind.WAIVER, page)


@waivers.get("/waivers/{name}", response_model=Waiver, responses=reading(404))
def get_waiver(house: Services, _actor: Reader, name: NamePath) -> Response:
    """One waiver; its ETag is the version that a change must name."""
    return get_object(house.waivers, Kind.WAIVER, name)


@waivers.put(
    "/waivers/{name}",
    response_model=Waiver | Plan,
    responses={201: {"model": Waiver, "description": "Created"}, **changing()},
    openapi_extra=body_of(WaiverBody),
)
def put_waiver(
    house: Services, actor: SecurityAdmin, name: NamePath, demand: Demand, document: Body, dry_run: DryRun = False
) -> Response:
    """Create or replace a waiver."""
    body = parsed(WaiverBody, without_server_fields(document))
    check_name(body.metadata.name, name)
    spec = body.spec.model_dump(mode="json", exclude_none=True)
    facts = house.facts.current()
    spec = waiver_spec(name, spec, today=facts.today, policy=facts.policy)
    return put_object(house.waivers, Kind.WAIVER, name, spec, demand, actor, is_dry_run=dry_run)


@waivers.delete(
    "/waivers/{name}",
    response_model=None,
    responses={200: {"model": Plan}, 204: {"description": "Deleted"}, **changing()},
)
def delete_waiver(
    house: Services, actor: SecurityAdmin, name: NamePath, demand: Demand, dry_run: DryRun = False
) -> Response:
    """Delete a waiver."""
    return delete_object(house.waivers, name, demand, actor, is_dry_run=dry_run)
