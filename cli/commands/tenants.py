"""``enginehouse tenants``: who may ask, and how much."""

from typing import Annotated

import typer

from cli.client import Api, Document, ProfileOption, ServerOption, TokenOption
from cli.objects import Name, Noun, add_commands
from cli.output import Format, Output

app = typer.Typer(no_args_is_help=True, help="Tenants of the gateway: budgets, weights, priority.")
NOUN = Noun("tenants", "Tenant", "tenant")


@app.command("create")
def create(
    name: Name,
    tokens_per_minute: Annotated[int | None, typer.Option(min=0, help="Tokens of any minute.")] = None,
    tokens_per_day: Annotated[int | None, typer.Option(min=0, help="Tokens of a calendar day in UTC.")] = None,
    requests_per_minute: Annotated[int | None, typer.Option(min=0, help="Requests of any minute.")] = None,
    concurrent_requests: Annotated[int | None, typer.Option(min=0, help="Requests at once.")] = None,
    usd_per_month: Annotated[float | None, typer.Option(min=0, help="Money of a calendar month; needs prices.")] = None,
    default_output_tokens: Annotated[
        int | None, typer.Option(min=1, help="The longest answer to a request that states none.")
    ] = None,
    queue_weight: Annotated[float | None, typer.Option(help="Its share of busy engines beside others.")] = None,
    priority: Annotated[int | None, typer.Option(help="While one with a higher one waits, it does.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a tenant, or change what is given here of one; 'apply' also takes limits away and sets those of models.

    Example: enginehouse tenants create acme --tokens-per-minute 100000 --concurrent-requests 32
    """
    given: Document = {
        "tokens_per_minute": tokens_per_minute,
        "tokens_per_day": tokens_per_day,
        "requests_per_minute": requests_per_minute,
        "concurrent_requests": concurrent_requests,
        "usd_per_month": usd_per_month,
        "default_output_tokens": default_output_tokens,
        "queue_weight": queue_weight,
        "priority": priority,
    }
    api = Api.connect(server, token, profile)
    stated = {key: value for key, value in given.items() if value is not None}
    made = NOUN.change(api, name, lambda spec: {**spec, **stated}, reason=None)
    NOUN.show([made], output, whole=made)


add_commands(app, NOUN)
