"""``/v1/gateway/snapshot``: what the gateways work from, with a long poll."""

import time
from typing import Annotated

import anyio
from fastapi import Header, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from control_plane.api.auth import GatewayOrReader, Services
from control_plane.api.etags import matches_any
from control_plane.api.routing import reading, router
from control_plane.services.house import House
from fleet.snapshot import GatewaySnapshot

LONGEST_WAIT_SECONDS = 30
LOOK_SECONDS = 0.05
"""How often a waiting request looks whether something was committed: a comparison of two numbers in memory."""
gateway = router("gateway")
IfNoneMatch = Annotated[str | None, Header(description="The ETag of the snapshot that the gateway has.")]
Wait = Annotated[
    float,
    Query(ge=0, le=LONGEST_WAIT_SECONDS, allow_inf_nan=False, description="Seconds to wait for another snapshot."),
]


@gateway.get(
    "/gateway/snapshot",
    response_model=GatewaySnapshot,
    responses={304: {"description": "The gateway has it"}, **reading()},
)
async def get_gateway_snapshot(
    house: Services, _actor: GatewayOrReader, if_none_match: IfNoneMatch = None, wait_seconds: Wait = 0.0
) -> Response:
    """Tenants, keys, routes and endpoints of one moment; 304 when the gateway has them already."""
    snapshot, etag = await _changed(house, if_none_match, wait_seconds)
    if matches_any(if_none_match, etag):
        return Response(status_code=304, headers={"ETag": etag})
    headers = {"ETag": etag, "Cache-Control": "no-store"}
    return Response(snapshot.model_dump_json(), media_type="application/json", headers=headers)


async def _changed(house: House, known: str | None, wait_seconds: float) -> tuple[GatewaySnapshot, str]:
    """The first snapshot that the client does not have, or the one at the end of its patience."""
    deadline = time.monotonic() + wait_seconds
    while True:
        revision = house.snapshots.revision.routes
        snapshot, etag = await run_in_threadpool(house.snapshots.current)
        if not matches_any(known, etag):
            return snapshot, etag
        while house.snapshots.revision.routes == revision:
            if time.monotonic() >= deadline or house.is_stopping():
                return snapshot, etag
            await anyio.sleep(LOOK_SECONDS)
