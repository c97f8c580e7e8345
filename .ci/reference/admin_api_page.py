"""docs/reference/admin-api.md: every route of the admin API with the scope that it needs."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from layout import code, page, plain, table

from control_plane.main import build_app
from control_plane.records import Scope
from control_plane.settings import settings_of

INTRODUCTION = """
The admin API speaks JSON below `/v1`. Objects have the shape `{apiVersion, kind, metadata, spec, status}`, with
`conditions` in `status`. `python -m control_plane openapi` prints the whole description (OpenAPI 3.1).

**Token.** `Authorization: Bearer eh_...`, made by `python -m control_plane token` and shown once; its hash is kept.
Scopes include each other: `security-admin` > `operator` > `reader`. A wrong token answers 401, a narrow one 403.

**Changes.** `PUT` by name creates or replaces and is idempotent. A change of what exists names the version that it was
made from: `If-Match` with the ETag of the last answer. Without it 428, with an old one 412. `If-None-Match: *` creates
only. `?dry_run=true` judges and stores nothing. `?reason=...` stands in the audit log.

**Lists** take `page_size` and `page_token`; a page with more to come has `next_page_token`.

**Problems** are RFC 9457 (`application/problem+json`). A refused manifest answers 422 with `violations`, each with
`rule`, `severity`, `pointer`, `message`, `remedy` and `evidence`.

| status | means |
|---|---|
| 400 | a query parameter or header can't be read |
| 401, 403 | no or a wrong token; its scope is too narrow |
| 404 | there is no such object |
| 409 | something else owns it, or still needs it |
| 412, 428 | it was changed meanwhile; the version is missing |
| 408 | head or body of the request came too slowly |
| 413, 415 | the body is too large; it isn't JSON |
| 422 | the rules refuse it (`violations`), or a field is wrong |
| 431 | the head of the request is too large |
| 503, 507 | it can't answer now; the disk is full |

A deployment's body is the pinned manifest as `enginehouse pin --write` writes it. Its answer adds `status`: `identity`,
`phase`, `conditions`, `residuals`, `endpoints`, and `proposal` (a pinned manifest with a reason, or null).
"""


def render() -> str:
    """The page."""
    with TemporaryDirectory() as folder:
        app = build_app(settings_of({"database_url": f"sqlite:///{Path(folder)}/none.db"}))
        scopes = dict(_scopes(app))
        rows = [
            (
                code(f"{method.upper()} {path}"),
                code(scopes.get((method, path)) or ""),
                plain(found.get("description", "")),
            )
            for path, methods in sorted(app.openapi()["paths"].items())
            for method, found in sorted(methods.items())
        ]
    return page("Admin API", "the routes of `control_plane.api`", INTRODUCTION, table(("route", "scope", "what"), rows))


def _scopes(app: Any) -> Iterator[tuple[tuple[str, str], str]]:  # noqa: ANN401 - any application with routes
    for route in _routes(app.router):
        found = next(_scopes_of(route.dependant), None)
        for method in route.methods:
            yield (method.lower(), route.path), found.value if found else ""


def _routes(router: Any) -> Iterator[Any]:  # noqa: ANN401 - routers hold routes and routers
    for route in router.routes:
        if hasattr(route, "dependant"):
            yield route
        elif hasattr(route, "original_router"):
            yield from _routes(route.original_router)


def _scopes_of(dependant: Any) -> Iterator[Scope]:  # noqa: ANN401 - the framework's own tree
    if dependant.call is not None and inspect.isfunction(dependant.call):
        captured = inspect.getclosurevars(dependant.call).nonlocals.values()
        yield from (value for value in captured if isinstance(value, Scope))
    for below in dependant.dependencies:
        yield from _scopes_of(below)
