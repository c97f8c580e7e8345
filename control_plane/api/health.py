"""``/livez`` and ``/readyz``: the only routes that answer without a token."""

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from control_plane.api.answers import answer
from control_plane.api.auth import Services

health = APIRouter(tags=["health"], generate_unique_id_function=lambda route: route.name)


class Live(BaseModel):
    """The process answers."""

    status: str


class ReadyCheck(BaseModel):
    """One thing that must hold."""

    type: str
    status: str
    message: str


class Ready(BaseModel):
    """Whether the control plane can do its work."""

    ready: bool
    checks: list[ReadyCheck]


@health.get("/livez", response_model=Live)
async def livez() -> Response:
    """The process answers; nothing else is touched."""
    return answer({"status": "live"})


@health.get("/readyz", response_model=Ready, responses={503: {"model": Ready, "description": "Not ready"}})
async def readyz(house: Services) -> Response:
    """What the loops found at their last look: the database, the feed and the age of its data."""
    is_ready, checks = house.readiness.answer()
    return answer({"ready": is_ready, "checks": checks}, status=200 if is_ready else 503)
