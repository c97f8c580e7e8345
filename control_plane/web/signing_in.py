"""Signing in and out: a token opens a session; forms count only when they come from our own pages."""

import re
from urllib.parse import parse_qs, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from control_plane.errors import BadRequest, Forbidden, Unauthenticated
from control_plane.web.rendering import page, redirect
from control_plane.web.sessions import LASTS, Sessions

COOKIE = "enginehouse_session"
SIGN_IN = "/sign-in"
SIGN_OUT = "/sign-out"
_FORM = "application/x-www-form-urlencoded"
_MOST_BYTES = 4_096
_LOCAL = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f-\uffff]{0,500}")
WRONG = "This token is not valid."
ENDED = "Your session has ended. Sign in again."


def show_sign_in(request: Request) -> Response:
    """The form."""
    return _form(request, 200, target="/")


def ask_to_sign_in(request: Request) -> Response:
    """The form in place of a page that needs a session; afterwards the page is shown."""
    query = request.scope["query_string"].decode("latin-1")
    is_page = request.method in ("GET", "HEAD")
    target = request.scope["path"] + (f"?{query}" if query else "") if is_page else "/"
    return _form(request, 401, target=_local(target), problem=ENDED if request.cookies.get(COOKIE) else None)


async def sign_in(request: Request) -> Response:
    """Open a session and go on to the page that was wanted."""
    _check_origin(request)
    fields = await _fields(request)
    target = _local(fields.get("next", "/"))
    sessions = _sessions(request)
    try:
        secret = await run_in_threadpool(sessions.open, fields.get("token", "").strip())
    except Unauthenticated:
        return await run_in_threadpool(lambda: _form(request, 401, target=target, problem=WRONG))
    sessions.close(request.cookies.get(COOKIE))
    answer = redirect(target)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(LASTS.total_seconds()),
        path="/",
        secure=request.scope["scheme"] == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


async def sign_out(request: Request) -> Response:
    """End the session."""
    _check_origin(request)
    _sessions(request).close(request.cookies.get(COOKIE))
    answer = redirect(SIGN_IN)
    answer.delete_cookie(COOKIE, path="/", secure=request.scope["scheme"] == "https", httponly=True, samesite="strict")
    return answer


def _form(request: Request, status: int, *, target: str, problem: str | None = None) -> Response:
    answer = page(request, "sign_in.html", status=status, target=target, problem=problem)
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="enginehouse"'
    return answer


def _sessions(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


def _check_origin(request: Request) -> None:
    """Browsers send the origin with every form; another one, or none, is not ours."""
    origin, host = request.headers.get("origin", ""), request.headers.get("host", "")
    try:
        parts = urlsplit(origin)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.netloc.lower() != host.lower():
        raise Forbidden("The form did not come from this server. Open the page again and send it from there.")


async def _fields(request: Request) -> dict[str, str]:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    raw = await request.body()
    if media_type != _FORM or len(raw) > _MOST_BYTES:
        raise BadRequest("The form can't be read. Open the page again and send it from there.")
    try:
        found = parse_qs(raw.decode("ascii"), max_num_fields=10)
    except ValueError:
        raise BadRequest("The form can't be read. Open the page again and send it from there.") from None
    return {name: values[0] for name, values in found.items()}


def _local(target: str) -> str:
    """A target on this server; any other becomes the overview."""
    is_form = target.startswith((SIGN_IN, SIGN_OUT))
    return target if _LOCAL.fullmatch(target) and not is_form else "/"
