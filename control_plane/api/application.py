"""The FastAPI application around the services."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from control_plane.api import gateway_shapes, placement_shapes, problems, shapes
from control_plane.api.advisories import advisories, engines
from control_plane.api.closings import closings
from control_plane.api.deployments import deployments
from control_plane.api.facts import audit_events, facts
from control_plane.api.gateway import gateway
from control_plane.api.gateway_nouns import NOUNS
from control_plane.api.health import health
from control_plane.api.keys import keys
from control_plane.api.placements import placements
from control_plane.api.requests import AroundRequests
from control_plane.api.tenants import tenants
from control_plane.api.triage import triage
from control_plane.api.usage import usage
from control_plane.api.waivers import waivers
from control_plane.services.house import House
from fleet.manifest import Manifest, PinnedManifest
from fleet.usage import UsageBatch

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
TITLE = "Enginehouse admin API"
VERSION = "1"
_BODIES = (
    PinnedManifest,
    Manifest,
    shapes.WaiverBody,
    shapes.TriageBody,
    shapes.TenantBody,
    shapes.KeyBody,
    shapes.RotationBody,
    gateway_shapes.PriceBody,
    gateway_shapes.TokenIssuerBody,
    gateway_shapes.RouteBody,
    gateway_shapes.OutputFilterBody,
    placement_shapes.PlacementBody,
    UsageBatch,
    problems.Problem,
)
"""Models that routes read or answer with by themselves, so that the framework does not see them."""


@cache
def _named() -> tuple[APIRouter, ...]:
    """The routers of the nouns, which know no house: making their routes takes longer than the rest of an app."""
    return tuple(noun.router for noun in NOUNS)


def application(house: House, lifespan: Lifespan | None = None) -> FastAPI:
    """The app with every route."""
    app = FastAPI(title=TITLE, version=VERSION, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.house = house
    problems.install(app)
    nouns = (
        deployments,
        placements,
        advisories,
        engines,
        waivers,
        triage,
        facts,
        audit_events,
        tenants,
        keys,
        *_named(),
        closings,
        gateway,
        usage,
        health,
    )
    for router in nouns:
        app.include_router(router)
    app.add_middleware(AroundRequests, meter=house.meter)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(title=TITLE, version=VERSION, routes=app.routes)
        _, definitions = models_json_schema(
            [(model, "validation") for model in _BODIES], ref_template="#/components/schemas/{model}"
        )
        components = schema.setdefault("components", {}).setdefault("schemas", {})
        for name, definition in definitions["$defs"].items():
            components.setdefault(name, definition)
        app.openapi_schema = schema
    return app.openapi_schema
