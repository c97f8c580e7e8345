"""``enginehouse usage``: what tenants used, by model and day."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import typer

from cli.client import Api, Document, ProfileOption, ServerOption, TokenOption
from cli.output import Format, emit

app = typer.Typer(no_args_is_help=True, help="What tenants used: requests, tokens and cost, by model and day.")
DIMENSIONS = ("tenant", "model", "day", "deployment", "key")
_DAY = ["%Y-%m-%d"]


class UsageFormat(StrEnum):
    """How usage is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


@app.callback()
def usage() -> None:
    """What tenants used: requests, tokens and cost, by model and day."""


@app.command("list")
def list_usage(
    tenant: Annotated[str | None, typer.Option("--tenant", help="Of this tenant alone.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Of this public model alone.")] = None,
    first: Annotated[datetime | None, typer.Option("--from", formats=_DAY, help="The first day, in UTC.")] = None,
    last: Annotated[datetime | None, typer.Option("--to", formats=_DAY, help="The last day; it counts too.")] = None,
    group_by: Annotated[
        str, typer.Option("--group-by", help="What sums are told apart by: tenant, model, day, deployment, key.")
    ] = "tenant,model,day",
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Annotated[UsageFormat, typer.Option("--output", "-o", help="How to print.")] = UsageFormat.TABLE,
) -> None:
    """List what was used, by the day on which requests were admitted; costs are exact decimal numbers.

    Example: enginehouse usage list --tenant acme --from 2026-11-01 --group-by model -o csv
    """
    api = Api.connect(server, token, profile)
    query = {"tenant": tenant, "model": model, "from": _day(first), "to": _day(last), "group_by": group_by}
    if output is UsageFormat.CSV:
        typer.echo(api.text("/v1/usage.csv", **query), nl=False)
        return
    items = list(api.every("/v1/usage", **query))
    emit({"items": items}, output=Format(output.value), rows=[_row(item) for item in items], title="usage")


def _day(moment: datetime | None) -> str | None:
    return moment.date().isoformat() if moment else None


def _row(item: Document) -> Document:
    """What a table shows: the dimensions that were asked for, and what counts."""
    grouped = {name: item.get(name) for name in DIMENSIONS if item.get(name) is not None}
    shown = ("requests", "unanswered_requests", "input_tokens", "cached_tokens", "output_tokens", "cost_usd")
    return grouped | {name: item.get(name) for name in shown}
