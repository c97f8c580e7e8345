"""``/v1/placements``: which engine, hardware and plan a manifest would get. It only answers; nothing is stored."""

from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.auth import Reader, Services
from control_plane.api.bodies import Body, parsed
from control_plane.api.placement_shapes import Placement, PlacementBody
from control_plane.api.routing import body_of, reading, router
from fleet.placement.document import choice_document

placements = router("placements")


@placements.post(
    "/placements",
    response_model=Placement,
    responses=reading(400, 413, 415),
    openapi_extra=body_of(PlacementBody),
)
def decide_placement(house: Services, _actor: Reader, document: Body) -> Response:
    """Choose engine, hardware and plan for a written manifest, with the reason for every other candidate."""
    body = parsed(PlacementBody, document)
    found = house.placements.decide(body.manifest, body.config)
    stamp = {"digest": found.facts.digest, "as_of": found.facts.as_of}
    head = {"apiVersion": "enginehouse.dev/v1", "kind": "Placement", "name": body.manifest.name}
    return answer({**head, **choice_document(found.choice), "facts": stamp})
