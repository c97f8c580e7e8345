"""``enginehouse prices``, ``token-issuers`` and ``output-filters``: what people set for the gateway by name."""

from typing import Annotated

import typer

from cli.client import Api, Document, ProfileOption, ServerOption, TokenOption
from cli.objects import Name, Noun, Row, add_commands, cell, name_of
from cli.output import Format, Output

prices = typer.Typer(no_args_is_help=True, help="What public models cost tenants.")
token_issuers = typer.Typer(no_args_is_help=True, help="Who may vouch for tenants by JWT.")
output_filters = typer.Typer(no_args_is_help=True, help="Filters of answers that routes and manifests can name.")


def _issuer_row(item: Document) -> Row:
    spec, fetched = item["spec"], (item.get("status") or {}).get("fetched") or {}
    tenants = [*spec.get("tenants", {}).values(), *spec.get("allowed_tenants", ())]
    return {
        "name": name_of(item),
        "issuer": spec["issuer"],
        "tenants": ", ".join(sorted(set(tenants))),
        "keys": len(spec.get("keys", ())) + fetched.get("keys", 0),
        "fetched": fetched.get("fetched"),
        "problem": fetched.get("problem"),
    }


def _filter_row(item: Document) -> Row:
    spec = item["spec"]
    return {
        "name": name_of(item),
        "classes": cell(spec["classes"]) if "classes" in spec else "all",
        "patterns": cell(spec.get("patterns", [])) or None,
        "denied": len(spec.get("denied", ())),
        "moderation": (spec.get("moderation") or {}).get("service", "default") if "moderation" in spec else None,
        "failure_mode": spec.get("failure_mode", "closed"),
    }


PRICES = Noun("prices", "Price", "price")
TOKEN_ISSUERS = Noun("token-issuers", "TokenIssuer", "token issuer", _issuer_row)
OUTPUT_FILTERS = Noun("output-filters", "OutputFilter", "output filter", _filter_row)


@prices.command("set")
def set_price(
    name: Name,
    input_usd: Annotated[float, typer.Option("--input-usd", min=0, help="USD of a million input tokens.")],
    output_usd: Annotated[float, typer.Option("--output-usd", min=0, help="USD of a million output tokens.")],
    cached_usd: Annotated[
        float | None, typer.Option("--cached-usd", min=0, help="USD of a million cached ones; none = as any input.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="The public model; none = the price's name.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Say what a public model costs.

    Example: enginehouse prices set support-chat --input-usd 0.5 --cached-usd 0.05 --output-usd 1.5
    """
    spec: Document = {"usd_per_million_input_tokens": input_usd, "usd_per_million_output_tokens": output_usd}
    if cached_usd is not None:
        spec["usd_per_million_cached_input_tokens"] = cached_usd
    if model is not None:
        spec["model"] = model
    made = PRICES.change(Api.connect(server, token, profile), name, lambda _before: spec, reason=None)
    PRICES.show([made], output, whole=made)


add_commands(prices, PRICES)
add_commands(token_issuers, TOKEN_ISSUERS)
add_commands(output_filters, OUTPUT_FILTERS)
