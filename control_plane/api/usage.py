"""``/v1/usage``: what was used, by tenant, model and day; ``/v1/gateway/usage``: where gateways bring their records."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from control_plane.api.answers import answer
from control_plane.api.auth import GatewayAlone, Reader, Services
from control_plane.api.bodies import Body, parsed
from control_plane.api.paging import Paging, listing
from control_plane.api.problems import described
from control_plane.api.routing import body_of, reading, router
from control_plane.api.shapes import ApiVersion
from control_plane.errors import BadRequest, Invalid
from control_plane.records import Document
from control_plane.services.usage import UsageService
from control_plane.usage_sums import Amounts, Dimension, Group, UsageQuery, UsageSum
from fleet.manifest import Problem
from fleet.usage import UsageBatch, UsageReceipt
from fleet.value import Value

usage = router("usage")
_DIMENSION = "(tenant|model|day|deployment|key)"
CSV = "text/csv; charset=utf-8"
_CSV_ANSWER = {"content": {"text/csv": {"schema": {"type": "string"}}}}
Tenant = Annotated[str | None, Query(max_length=63, description="Of this tenant alone.")]
Model = Annotated[str | None, Query(max_length=256, description="Of this public model alone.")]
Day = r"^\d{4}-\d{2}-\d{2}$"
From = Annotated[
    str | None, Query(alias="from", pattern=Day, description="The first day (UTC); none = from the first.")
]
To = Annotated[str | None, Query(alias="to", pattern=Day, description="The last day, which counts too.")]
GroupBy = Annotated[
    str,
    Query(
        pattern=f"^{_DIMENSION}(,{_DIMENSION}){{0,4}}$",
        description="What sums are told apart by, separated by commas: tenant, model, day, deployment, key.",
    ),
]


def wanted(
    tenant: Tenant = None,
    model: Model = None,
    first_day: From = None,
    last_day: To = None,
    group_by: GroupBy = "tenant,model,day",
) -> UsageQuery:
    """What the query parameters ask for; raises `Invalid`."""
    for name, day in (("from", first_day), ("to", last_day)):
        _check_day(name, day)
    if first_day and last_day and first_day > last_day:
        message = f"'from' is {first_day}, after 'to' {last_day}; exchange them"
        raise Invalid(message, [Problem("/query/from", message)])
    dimensions = tuple(dict.fromkeys(map(Dimension, group_by.split(","))))
    return UsageQuery(dimensions, tenant, model, first_day, last_day)


Wanted = Annotated[UsageQuery, Depends(wanted)]


class UsageShape(Value):
    """Sums of one group; a dimension that was not asked for is ``null``."""

    tenant: str | None
    model: str | None
    day: date | None
    deployment: str | None
    key: str | None
    requests: int
    unanswered_requests: int
    """The engine gave an error, or none could be asked: they have no tokens."""
    estimated_requests: int
    """Their tokens were counted or reserved, because the engine did not come to state them."""
    unpriced_requests: int
    """Their model had no price: they are not in ``cost_usd``."""
    input_tokens: int
    cached_tokens: int
    """Among the input, found in the engine's cache."""
    output_tokens: int
    cost_usd: str
    """A decimal number of up to 12 places, as text, because it is exact."""


class UsageList(Value):
    """A page of usage."""

    apiVersion: ApiVersion
    kind: Literal["UsageList"]
    items: tuple[UsageShape, ...]
    next_page_token: str | None


@usage.get("/usage", response_model=UsageList, responses={200: _CSV_ANSWER, **reading(400)})
def list_usage(request: Request, house: Services, _actor: Reader, page: Paging, query: Wanted) -> Response:
    """Sums of what was used, by the day on which requests were admitted; as a table where ``Accept`` is text/csv."""
    if _prefers_csv(request.headers.get("accept", "")):
        return _csv(house.usage, query)
    after = _group(page.after, query)
    sums, has_more = page.cut(house.usage.page(query, after=after, limit=page.limit))
    token = page.token(json.dumps(sums[-1].group)) if has_more else None
    return answer(listing("Usage", [_document(item, query) for item in sums], token))


@usage.get("/usage.csv", response_class=Response, responses={200: _CSV_ANSWER, **reading(400)})
def export_usage(house: Services, _actor: Reader, query: Wanted) -> Response:
    """The same as a table, everything on one page."""
    return _csv(house.usage, query)


@usage.post(
    "/gateway/usage",
    response_model=UsageReceipt,
    responses=described(400, 413, 415, 507),
    openapi_extra=body_of(UsageBatch),
)
def add_gateway_usage(house: Services, _actor: GatewayAlone, document: Body) -> Response:
    """Take records of a gateway; one that was counted before, by its id, is dropped, so sending again is safe."""
    return answer(house.usage.take(parsed(UsageBatch, document)).model_dump())


def _check_day(name: str, day: str | None) -> None:
    try:
        date.fromisoformat(day or "2000-01-01")
    except ValueError:
        message = f"'{name}' is '{day}', which no calendar has; give a day as 2026-11-30"
        raise Invalid(message, [Problem(f"/query/{name}", message)]) from None


def _group(after: str, query: UsageQuery) -> Group:
    """The group after which a page begins; raises `BadRequest`."""
    if not after:
        return ()
    try:
        values = json.loads(after)
    except (ValueError, RecursionError):
        values = None
    is_group = isinstance(values, list) and all(isinstance(value, str) for value in values)
    if not is_group or len(values) != len(query.group_by):
        raise BadRequest("page_token can't be read; send next_page_token of the page before, unchanged")
    return tuple(values)


def _prefers_csv(accept: str) -> bool:
    """Whether a table is named before JSON."""
    named = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    return next((name == "text/csv" for name in named if name in ("text/csv", "application/json", "*/*")), False)


def _document(item: UsageSum, query: UsageQuery) -> Document:
    grouped = dict(zip((dimension.value for dimension in query.group_by), item.group, strict=True))
    return {dimension.value: grouped.get(dimension.value) for dimension in Dimension} | _amounts(item.amounts)


def _amounts(amounts: Amounts) -> Document:
    return {
        "requests": amounts.requests,
        "unanswered_requests": amounts.unanswered_requests,
        "estimated_requests": amounts.estimated_requests,
        "unpriced_requests": amounts.unpriced_requests,
        "input_tokens": amounts.input_tokens,
        "cached_tokens": amounts.cached_tokens,
        "output_tokens": amounts.output_tokens,
        "cost_usd": amounts.cost,
    }


def _csv(service: UsageService, query: UsageQuery) -> Response:
    headers = {"Cache-Control": "no-store", "Content-Disposition": 'attachment; filename="usage.csv"'}
    return StreamingResponse(_lines(service, query), media_type=CSV, headers=headers)


def _lines(service: UsageService, query: UsageQuery) -> Iterator[str]:
    names = [dimension.value for dimension in query.group_by]
    yield _line([*names, *_amounts(Amounts())])
    for item in service.every(query):
        yield _line([*item.group, *map(str, _amounts(item.amounts).values())])


def _line(cells: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue()
