"""``/v1/proposed-closings``: code paths that people may close at the door, and why."""

import json
from typing import Annotated, Literal

from fastapi import Query
from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.auth import Reader, Services
from control_plane.api.paging import Paging, listing
from control_plane.api.routing import reading, router
from control_plane.api.shapes import ApiVersion
from control_plane.records import Document
from control_plane.services.closings import ProposedClosing
from fleet.value import Value

closings = router("routes")
Model = Annotated[str | None, Query(max_length=256, description="Of this public model alone.")]


class ProposedClosingShape(Value):
    """A code path of a public model that the gateway could refuse at the door."""

    model: str
    path: str
    route: str | None
    """The stored route of the model; ``null`` = it has none yet."""
    refused: bool
    """Whether the rules refuse one of the deployments for it; ``false`` = a residual."""
    severity: str | None
    """The highest rating of the advisories; ``null`` = none is rated."""
    advisories: tuple[str, ...]
    deployments: tuple[str, ...]


class ProposedClosingList(Value):
    """A page of proposed closings, by model and path."""

    apiVersion: ApiVersion
    kind: Literal["ProposedClosingList"]
    items: tuple[ProposedClosingShape, ...]
    next_page_token: str | None


@closings.get("/proposed-closings", response_model=ProposedClosingList, responses=reading(400))
def list_proposed_closings(house: Services, _actor: Reader, page: Paging, model: Model = None) -> Response:
    """Paths that the gateway can close and an open defect is reached by; `PUT /v1/routes/{name}` closes one."""
    left = sorted((item for item in house.closings.every(model) if _key(item) > page.after), key=_key)
    items, has_more = page.cut(left[: page.limit])
    token = page.token(_key(items[-1])) if has_more else None
    return answer(listing("ProposedClosing", [_document(item) for item in items], token))


def _key(item: ProposedClosing) -> str:
    """One text for both, by which pages go on."""
    return json.dumps([item.model, item.path], ensure_ascii=False)


def _document(item: ProposedClosing) -> Document:
    return {
        "model": item.model,
        "path": item.path,
        "route": item.route,
        "refused": item.is_refused,
        "severity": item.severity,
        "advisories": list(item.advisories),
        "deployments": list(item.deployments),
    }
