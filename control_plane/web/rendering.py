"""How a page is made: templates that escape everything, and headers that let the browser do little."""

import shlex
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType

import jinja2
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from control_plane.services.house import House
from control_plane.web.sessions import Session
from control_plane.web.words import age, day_and_time, short

POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Security-Policy": POLICY,
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        # Not `no-referrer`: under it browsers send `Origin: null` with our own forms, and the origin check needs it.
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "Cache-Control": "no-store",
    }
)
ASSETS: Mapping[str, str] = MappingProxyType(
    {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
)
"""Every file that a page may load, with its media type."""
ATTENTION = {"AdvisoryDataFresh": "Advisory data", "AdvisoryFeedReachable": "Feed", "DatabaseReachable": "Database"}


def page(request: Request, template: str, *, status: int = 200, **content: object) -> Response:
    """A page as an answer; signed-in people see the facts and what needs attention above it."""
    house: House = request.app.state.house
    above = {"facts": house.facts.current(), "attention": _attention(house)} if _session(request) else {}
    return _answer(request, template, status, above | content)


def message(request: Request, status: int, title: str, text: str) -> Response:
    """A page that says one thing; it reads nothing, so it can say that nothing can be read."""
    return _answer(request, "message.html", status, {"title": title, "text": text})


def redirect(target: str) -> Response:
    """Go there with GET."""
    return RedirectResponse(target, status_code=303, headers=dict(HEADERS))


def asset(request: Request) -> Response:
    """One of the files beside the pages."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return message(request, 404, "Not found", "There is no such file.")
    return Response(_asset(name), media_type=ASSETS[name], headers=dict(HEADERS))


def _answer(request: Request, template: str, status: int, content: Mapping[str, object]) -> Response:
    session = _session(request)
    frame = {"path": request.scope["path"], "actor": session.actor if session else None, "facts": None, "attention": ()}
    text = _templates().get_template(template).render({**frame, **content})
    return Response(text, status_code=status, media_type="text/html", headers=dict(HEADERS))


def _session(request: Request) -> Session | None:
    session: Session | None = request.scope.get("signed_in")
    return session


def _attention(house: House) -> list[tuple[str, str]]:
    _, checks = house.readiness.answer()
    failing = (item for item in checks if item["status"] != "True")
    return [(ATTENTION.get(str(item["type"]), str(item["type"])), str(item["message"])) for item in failing]


@lru_cache(maxsize=len(ASSETS))
def _asset(name: str) -> bytes:
    return (files("control_plane.web") / "assets" / name).read_bytes()


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("control_plane.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"age": age, "moment": day_and_time, "short": short, "shell": shlex.quote}
    return environment
