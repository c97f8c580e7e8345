"""The pages about the gateway's side: routes, prices and output filters."""

from starlette.requests import Request
from starlette.responses import Response

from control_plane.services.house import House
from control_plane.web import gateway_views
from control_plane.web.rendering import page

_LONGEST_MODEL = 256


def show_routes(request: Request) -> Response:
    """Public models with the engines that serve them, and what is closed at the door."""
    after = request.query_params.get("after", "")[:_LONGEST_MODEL]
    cards, next_after = gateway_views.routes(_house(request), after=after)
    return page(request, "routes.html", cards=cards, next_after=next_after, is_first=not after)


def show_prices(request: Request) -> Response:
    """What public models cost tenants."""
    rows, unpriced = gateway_views.prices(_house(request))
    return page(request, "prices.html", rows=rows, unpriced=unpriced)


def show_filters(request: Request) -> Response:
    """Which values output filters look for; never their patterns."""
    return page(request, "filters.html", rows=gateway_views.filters(_house(request)))


def _house(request: Request) -> House:
    house: House = request.app.state.house
    return house
