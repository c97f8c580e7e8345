"""How routes are made: unknown query parameters are refused, operation ids are function names, bodies are described."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from pydantic import BaseModel

from control_plane.api.problems import described
from control_plane.errors import Invalid
from fleet.manifest import Problem
from fleet.nearest import did_you_mean

NamePath = Annotated[
    str, Path(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", max_length=63, description="The object's name.")
]
DryRun = Annotated[bool, Query(description="Answer with the plan and store nothing.")]


def known_parameters(request: Request) -> None:
    """Refuse query parameters that the route does not have, naming the nearest; raises `Invalid`."""
    route = request.scope.get("route")
    if not isinstance(route, APIRoute):
        return
    fields = get_flat_params(route.dependant)
    known = [field.alias for field in fields if isinstance(field.field_info, params.Query)]
    for name in request.query_params:
        if name not in known:
            message = f"unknown query parameter {name!r}{did_you_mean(name, known)}"
            raise Invalid(message, [Problem(f"/query/{name!a}", message)])


def router(tag: str) -> APIRouter:
    """A router for one noun."""
    return APIRouter(
        prefix="/v1",
        tags=[tag],
        dependencies=[Depends(known_parameters)],
        generate_unique_id_function=lambda route: route.name,
    )


def body_of(*models: type[BaseModel]) -> dict[str, Any]:
    """The description of a body that the route reads by itself."""
    references = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in models]
    schema = references[0] if len(references) == 1 else {"anyOf": references}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def reading(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route that reads."""
    return described(*statuses)


def changing(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route that changes something."""
    return described(400, 404, 409, 412, 413, 415, 428, 507, *statuses)
