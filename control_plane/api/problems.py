"""Errors as RFC 9457 problems: the only place that knows HTTP codes."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import compile_path

from control_plane import errors, logs
from control_plane.api.answers import json_bytes
from fleet.violation import Violation

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:enginehouse:problem:"

_CODES: Mapping[type[errors.ControlPlaneError], tuple[int, str, str]] = {
    errors.BadRequest: (400, "bad-request", "The request can't be read"),
    errors.Unauthenticated: (401, "unauthenticated", "A valid token is needed"),
    errors.Forbidden: (403, "forbidden", "The token's scope is too narrow"),
    errors.NotFound: (404, "not-found", "There is no such object"),
    errors.Conflict: (409, "conflict", "The state of the object does not allow this"),
    errors.TooSlow: (408, "too-slow", "The request came too slowly"),
    errors.StaleVersion: (412, "stale-version", "The object is at another version"),
    errors.TooLarge: (413, "too-large", "The body is too large"),
    errors.Refused: (422, "refused", "The rules refuse it"),
    errors.Invalid: (422, "invalid", "The content is wrong"),
    errors.VersionRequired: (428, "version-required", "If-Match is needed"),
    errors.StorageFull: (507, "storage-full", "The database has no room left"),
    errors.StorageReadOnly: (503, "storage-read-only", "The database can't be written"),
    errors.StorageError: (503, "storage", "The database can't be used now"),
}
_TITLES = {
    400: ("bad-request", "The request can't be read"),
    404: ("not-found", "There is no such address"),
    405: ("method-not-allowed", "The address does not take this method"),
    415: ("unsupported-media-type", "The body must be JSON"),
}


class FieldError(BaseModel):
    """One place where a request is wrong."""

    pointer: str
    message: str


class Problem(BaseModel):
    """A problem as RFC 9457 describes it."""

    model_config = ConfigDict(title="Problem")

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
    errors: list[FieldError] | None = None
    """Places in the request that are wrong."""
    violations: list[Violation] | None = None
    """Rules that refuse it."""


def install(app: FastAPI) -> None:
    """Answer every error as a problem."""
    app.add_exception_handler(errors.ControlPlaneError, _on_own_error)
    app.add_exception_handler(RequestValidationError, _on_wrong_parameters)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_unexpected)


def problem(
    request: Request,
    status: int,
    slug: str,
    title: str,
    detail: str,
    *,
    headers: Mapping[str, str] | None = None,
    **more: object,
) -> Response:
    """A problem as an answer."""
    body = {"type": TYPE_PREFIX + slug, "title": title, "status": status, "detail": detail}
    body |= {"request_id": request.scope.get("request_id")} | more
    return Response(json_bytes(body), status_code=status, media_type=MEDIA_TYPE, headers=dict(headers or {}))


def described(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documented problems of a route: the given ones and those that every route may answer with."""
    names = {code: title for code, _, title in _CODES.values()}
    wanted = sorted({401, 403, 422, 503, *statuses})
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        status: {"description": names.get(status, _TITLES.get(status, ("", "Problem"))[1]), "content": content}
        for status in wanted
    }


async def _on_own_error(request: Request, error: Exception) -> Response:
    code, slug, title = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), (500, "error", "Error"))
    more: dict[str, Any] = {}
    if isinstance(error, errors.Invalid):
        more["errors"] = [{"pointer": item.pointer, "message": item.message} for item in error.problems]
    if isinstance(error, errors.Refused):
        more["violations"] = [item.model_dump(mode="json", exclude_none=True) for item in error.violations]
    headers = {}
    if code == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="enginehouse"'
    if code == 503:
        headers["Retry-After"] = "1"
    if code == 408:
        headers["Connection"] = "close"
    return problem(request, code, slug, title, str(error), headers=headers, **more)


async def _on_wrong_parameters(request: Request, error: Exception) -> Response:
    details: Sequence[Any] = error.errors() if isinstance(error, RequestValidationError) else ()
    found = [{"pointer": "/" + "/".join(map(str, item["loc"])), "message": _sentence(item)} for item in details]
    words = "; ".join(f"{item['pointer']}: {item['message']}" for item in found)
    return problem(request, 422, "invalid", "The content is wrong", words or "a parameter is wrong", errors=found)


def _sentence(detail: Mapping[str, Any]) -> str:
    found = detail.get("input")
    shown = f" (found {found!r})" if isinstance(found, str | int | float | bool) else ""
    return f"{detail['msg']}{shown}"


async def _on_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    slug, title = _TITLES.get(status, ("http-error", "The request failed"))
    detail = f"{request.method} {request.url.path}: {title[0].lower()}{title[1:]}"
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if status == 405:
        headers["Allow"] = _methods_of(request)
        detail += f"; it takes {headers['Allow']}"
    elif isinstance(error, HTTPException) and status != 404:
        detail = str(error.detail)
    return problem(request, status, slug, title, detail, headers=headers)


def _methods_of(request: Request) -> str:
    """Every method of an address: each route knows only its own, the description knows all."""
    paths: Mapping[str, Mapping[str, object]] = request.app.openapi()["paths"]
    fitting = (methods for path, methods in paths.items() if compile_path(path)[0].match(request.scope["path"]))
    return ", ".join(sorted({method.upper() for methods in fitting for method in methods}))


async def _on_unexpected(request: Request, error: Exception) -> Response:
    logs.get().error(logs.REQUEST_FAILED, path=request.url.path, problem=type(error).__name__, exc_info=error)
    detail = "the control plane failed; its log has the reason under this request id. Nothing was stored"
    return problem(request, 500, "internal", "The control plane failed", detail)
