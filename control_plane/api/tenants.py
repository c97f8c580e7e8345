"""``/v1/tenants``: who may ask, and how much."""

from starlette.responses import Response

from control_plane.api.auth import Operator, Reader, Services
from control_plane.api.bodies import Body, check_name, parsed
from control_plane.api.etags import Demand
from control_plane.api.lists import TenantList
from control_plane.api.objects import delete_object, get_object, list_objects, put_object, without_server_fields
from control_plane.api.paging import Paging
from control_plane.api.routing import DryRun, NamePath, body_of, changing, reading, router
from control_plane.api.shapes import Plan, Tenant, TenantBody
from control_plane.records import Kind

tenants = router("tenants")


@tenants.get("/tenants", response_model=TenantList, responses=reading(400))
def list_tenants(house: Services, _actor: Reader, page: Paging) -> Response:
    """Every tenant by name."""
    return list_objects(house.tenants, Kind.TENANT, page)


@tenants.get("/tenants/{name}", response_model=Tenant, responses=reading(404))
def get_tenant(house: Services, _actor: Reader, name: NamePath) -> Response:
    """One tenant; its ETag is the version that a change must name."""
    return get_object(house.tenants, Kind.TENANT, name)


@tenants.put(
    "/tenants/{name}",
    response_model=Tenant | Plan,
    responses={201: {"model": Tenant, "description": "Created"}, **changing()},
    openapi_extra=body_of(TenantBody),
)
def put_tenant(
    house: Services, actor: Operator, name: NamePath, demand: Demand, document: Body, dry_run: DryRun = False
) -> Response:
    """Create or replace a tenant."""
    body = parsed(TenantBody, without_server_fields(document))
    check_name(body.metadata.name, name)
    spec = body.spec.model_dump(mode="json", exclude_none=True, exclude_unset=True)
    return put_object(house.tenants, Kind.TENANT, name, spec, demand, actor, is_dry_run=dry_run)


@tenants.delete(
    "/tenants/{name}",
    response_model=None,
    responses={200: {"model": Plan}, 204: {"description": "Deleted"}, **changing()},
)
def delete_tenant(
    house: Services, actor: Operator, name: NamePath, demand: Demand, dry_run: DryRun = False
) -> Response:
    """Delete a tenant."""
    return delete_object(house.tenants, name, demand, actor, is_dry_run=dry_run)
