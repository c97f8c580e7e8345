"""The objects with a name and a spec, kind by kind: where they are kept, and what is looked at before a change."""

from control_plane.ports import Clock, Store
from control_plane.records import Kind
from control_plane.services.keys import refuse_tenant_with_keys
from control_plane.services.objects import ObjectService
from control_plane.services.settings_checks import (
    check_filter,
    check_issuer,
    check_price,
    check_route,
    check_tenant,
    refuse_used_filter,
)


def object_services(store: Store, clock: Clock) -> dict[str, ObjectService]:
    """The service of each kind, by its place in the house."""
    return {
        "waivers": ObjectService(kind=Kind.WAIVER, rows=lambda unit: unit.waivers, store=store, clock=clock),
        "triage": ObjectService(kind=Kind.TRIAGE, rows=lambda unit: unit.triage, store=store, clock=clock),
        "tenants": ObjectService(
            kind=Kind.TENANT, rows=lambda unit: unit.tenants, store=store, clock=clock,
            before_put=check_tenant, before_delete=refuse_tenant_with_keys,
        ),
        "prices": ObjectService(
            kind=Kind.PRICE, rows=lambda unit: unit.prices, store=store, clock=clock, before_put=check_price
        ),
        "token_issuers": ObjectService(
            kind=Kind.TOKEN_ISSUER, rows=lambda unit: unit.token_issuers, store=store, clock=clock,
            before_put=check_issuer,
        ),
        "routes": ObjectService(
            kind=Kind.ROUTE, rows=lambda unit: unit.routes, store=store, clock=clock, before_put=check_route
        ),
        "output_filters": ObjectService(
            kind=Kind.OUTPUT_FILTER, rows=lambda unit: unit.output_filters, store=store, clock=clock,
            before_put=check_filter, before_delete=refuse_used_filter,
        ),
    }  # fmt: skip
