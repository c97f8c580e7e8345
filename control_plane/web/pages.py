"""The pages: each reads the services and shows what they say."""

import re
from collections.abc import Sequence
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from control_plane.errors import BadRequest, NotFound
from control_plane.services.advisories import AdvisoryFilter
from control_plane.services.house import House
from control_plane.usage_sums import Dimension, UsageQuery
from control_plane.web import data_views, fleet_views
from control_plane.web.rendering import page
from fleet.severity import Severity

Choice = TypeVar("Choice", bound=str)
EVENTS = 50
USAGE_LINES = 500
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST = 200


def show_overview(request: Request) -> Response:
    """Every deployment in a line."""
    shown: fleet_views.Shown = _one_of(request, "show", fleet_views.SORTS) or "all"
    after = request.query_params.get("after", "")
    if after and not _NAME.fullmatch(after):
        raise BadRequest("The page can't be found; start again from the first one.")
    found = fleet_views.overview(_house(request), shown=shown, after=after)
    return page(request, "overview.html", found=found, shown=shown, is_first=not after)


def show_deployment(request: Request) -> Response:
    """Everything about one deployment."""
    name = request.path_params["name"]
    if not _NAME.fullmatch(name):
        raise NotFound("deployment", name)
    return page(request, "deployment.html", found=fleet_views.detail(_house(request), name))


def show_advisories(request: Request) -> Response:
    """Advisories, by package, rating or a part of a name."""
    severity = _one_of(request, "severity", tuple(Severity))
    given = {name: request.query_params.get(name, "").strip()[:_LONGEST] for name in ("package", "q", "after")}
    wanted = AdvisoryFilter(package=given["package"] or None, severity=severity, text=given["q"] or None)
    rows, next_after = data_views.advisories(_house(request), wanted, after=given["after"])
    return page(
        request,
        "advisories.html",
        rows=rows,
        next_after=next_after,
        is_first=not given["after"],
        wanted={"package": given["package"], "severity": severity or "", "q": given["q"]},
        severities=[item.value for item in reversed(Severity)],
    )


def show_pins(request: Request) -> Response:
    """Floors and closed paths of every engine."""
    return page(request, "pins.html", matrix=data_views.matrix(_house(request)))


def show_usage(request: Request) -> Response:
    """What tenants used in this month, by model."""
    house = _house(request)
    first_day = house.facts.current().today.replace(day=1).isoformat()
    query = UsageQuery(group_by=(Dimension.TENANT, Dimension.MODEL), first_day=first_day)
    found = house.usage.page(query, after=(), limit=USAGE_LINES + 1)
    return page(request, "usage.html", sums=found[:USAGE_LINES], has_more=len(found) > USAGE_LINES, first_day=first_day)


def show_audit(request: Request) -> Response:
    """The newest events first, 50 at a time."""
    house = _house(request)
    head = house.audit.head()
    until = _number(request, "until", head.sequence)
    start = max(0, until - EVENTS)
    events, _ = house.audit.page(after=start, limit=until - start) if until else ((), head)
    return page(
        request,
        "audit.html",
        events=list(reversed(events)),
        head=head,
        older=start or None,
        is_first=until == head.sequence,
    )


def _house(request: Request) -> House:
    house: House = request.app.state.house
    return house


def _one_of(request: Request, name: str, known: Sequence[Choice]) -> Choice | None:
    given = request.query_params.get(name, "")
    found = next((item for item in known if item == given), None)
    if given and found is None:
        raise BadRequest(f"{name} '{given[:40]}' is not known; choose one of {', '.join(known)}.")
    return found


def _number(request: Request, name: str, highest: int) -> int:
    given = request.query_params.get(name, "")
    if not given:
        return highest
    if not re.fullmatch(r"[0-9]{1,15}", given):
        raise BadRequest(f"{name} '{given[:40]}' is not a number of an event.")
    return min(int(given), highest)
