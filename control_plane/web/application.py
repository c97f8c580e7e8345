"""The pages as one application beside the API: nothing but the sign-in is shown without a session."""

from collections.abc import Mapping

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from control_plane import errors
from control_plane.ports import Clock
from control_plane.services.house import House
from control_plane.web import gateway_pages, pages, signing_in
from control_plane.web.rendering import asset, message
from control_plane.web.sessions import Sessions

API_SEGMENTS = frozenset({"v1", "livez", "readyz", "openapi.json"})
"""First parts of addresses that are the API's: their errors stay JSON, whoever asks."""
ROUTES = (
    Route("/", pages.show_overview, methods=["GET"]),
    Route("/deployments/{name}", pages.show_deployment, methods=["GET"]),
    Route("/routes", gateway_pages.show_routes, methods=["GET"]),
    Route("/prices", gateway_pages.show_prices, methods=["GET"]),
    Route("/filters", gateway_pages.show_filters, methods=["GET"]),
    Route("/advisories", pages.show_advisories, methods=["GET"]),
    Route("/pins", pages.show_pins, methods=["GET"]),
    Route("/usage", pages.show_usage, methods=["GET"]),
    Route("/audit", pages.show_audit, methods=["GET"]),
    Route(signing_in.SIGN_IN, signing_in.show_sign_in, methods=["GET"]),
    Route(signing_in.SIGN_IN, signing_in.sign_in, methods=["POST"]),
    Route(signing_in.SIGN_OUT, signing_in.sign_out, methods=["POST"]),
    Route("/assets/{name}", asset, methods=["GET"]),
)
_OWN_SEGMENTS = frozenset(route.path.split("/")[1] for route in ROUTES)
_OPEN = frozenset({"sign-in", "sign-out", "assets"})
"""First parts of addresses that are answered without a session."""
_TITLES: Mapping[type[errors.ControlPlaneError], tuple[int, str]] = {
    errors.BadRequest: (400, "This can't be read"),
    errors.Forbidden: (403, "Not allowed"),
    errors.NotFound: (404, "Not found"),
    errors.TooSlow: (408, "Too slow"),
    errors.TooLarge: (413, "Too large"),
    errors.StorageError: (503, "The database can't be used now"),
}


def install(app: FastAPI, house: House, clock: Clock) -> None:
    """Show the pages beside the API; they are no part of its description."""
    app.router.routes.append(Pages(pages_of(house, clock)))


def pages_of(house: House, clock: Clock) -> Starlette:
    """The application of the pages."""
    sessions = Sessions(tokens=house.tokens, clock=clock)
    app = Starlette(
        routes=ROUTES,
        middleware=[Middleware(OnlySignedIn, sessions=sessions)],
        exception_handlers={
            errors.ControlPlaneError: _on_own_error,
            HTTPException: _on_http_error,
            Exception: _on_unexpected,
        },
    )
    app.router.redirect_slashes = False
    app.state.house = house
    app.state.sessions = sessions
    return app


class Pages(BaseRoute):
    """Takes the pages' own addresses, and unknown ones when a browser asks for them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the pages answer."""
        if scope["type"] != "http":
            return Match.NONE, {}
        segment = _segment(scope)
        is_browser = scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")
        is_ours = segment in _OWN_SEGMENTS or (is_browser and segment not in API_SEGMENTS)
        return (Match.FULL if is_ours else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""
        await self._app(scope, receive, send)


class OnlySignedIn:
    """Stands before every page: without a session there is the sign-in alone."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        self._app = app
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request pass, or ask for a token."""
        if scope["type"] != "http" or _segment(scope) in _OPEN:
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        answer = await run_in_threadpool(self._answer_without_session, request)
        await (answer or self._app)(scope, receive, send)

    def _answer_without_session(self, request: Request) -> Response | None:
        try:
            session = self._sessions.find(request.cookies.get(signing_in.COOKIE))
        except errors.ControlPlaneError as error:
            return _on_own_error(request, error)
        if session is None:
            return signing_in.ask_to_sign_in(request)
        request.scope["signed_in"] = session
        request.scope["actor"] = session.actor
        return None


def _segment(scope: Scope) -> str:
    path: str = scope["path"]
    return path.split("/", 2)[1] if path.startswith("/") else path


def _on_own_error(request: Request, error: Exception) -> Response:
    known = next((_TITLES[kind] for kind in type(error).__mro__ if kind in _TITLES), (500, "The control plane failed"))
    text = str(error)
    return message(request, *known, text[:1].upper() + text[1:])


def _on_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 404:
        return message(request, 404, "Not found", "There is no page at this address.")
    if status != 405:
        return message(request, status, "The request failed", "The page can't be shown.")
    answer = message(request, 405, "Not allowed", f"This address does not take {request.method}.")
    answer.headers.update((error.headers or {}) if isinstance(error, HTTPException) else {})
    return answer


def _on_unexpected(request: Request, _error: Exception) -> Response:
    """The error goes on to the API's handler, which logs it."""
    request_id = request.scope.get("request_id")
    return message(request, 500, "The control plane failed", f"Its log has the reason under request {request_id}.")
