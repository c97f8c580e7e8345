"""``enginehouse keys``: API keys of tenants, shown once."""

import re
from datetime import datetime
from typing import Annotated

import typer

from cli.client import Api, Document, ProfileOption, ServerOption, TokenOption, member
from cli.exits import UsageError
from cli.objects import Row, cell, name_of
from cli.output import Format, Output, emit, tell

app = typer.Typer(no_args_is_help=True, help="API keys of tenants; a key is shown once.")
Id = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as 'keys list' shows it.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; it stands in the audit log.")]
SHOWN_ONCE = "the key is shown this once; store it now"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@app.command("list")
def list_keys(
    tenant: Annotated[str | None, typer.Option("--tenant", help="Keys of this tenant alone.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """List keys by id, tenant and prefix; a key itself is never shown again.

    Example: enginehouse keys list --tenant acme
    """
    items = list(Api.connect(server, token, profile).every("/v1/keys", tenant=tenant))
    emit({"items": items}, output=output, rows=[_row(item) for item in items], names=[name_of(item) for item in items])


@app.command("get")
def get(
    key_id: Id,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what is known of one key: its scopes, its end, and earlier generations that go on.

    Example: enginehouse keys get acme-app -o json
    """
    item = Api.connect(server, token, profile).get(member("keys", key_id))
    emit(item, output=output, rows=[_row(item)], names=[name_of(item)])


@app.command("create")
def create(
    tenant: Annotated[str, typer.Argument(help="The tenant that the key is for.")],
    name: Annotated[str | None, typer.Option("--name", help="Its id; none = the server gives one.")] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", help="A public model that it may ask for; repeatable; none = all.")
    ] = None,
    expires: Annotated[
        datetime | None, typer.Option("--expires", formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"], help="Its end, in UTC.")
    ] = None,
    pins_arms: Annotated[
        bool, typer.Option("--pins-arms", help="Its requests may say which arm serves them, to test a canary.")
    ] = False,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Create a key for a tenant and show it once.

    Example: enginehouse keys create acme --name acme-app --model support-chat --expires 2027-06-30
    """
    body: Document = {"tenant": tenant, "models": model or [], "pins_arms": pins_arms}
    if name is not None:
        body["name"] = name
    if expires is not None:
        body["expires"] = f"{expires.isoformat()}Z"
    created = Api.connect(server, token, profile).post("/v1/keys", body)
    _show_new(created, output)


@app.command("rotate")
def rotate(
    key_id: Id,
    overlap: Annotated[
        str, typer.Option("--overlap", help="How long the key before goes on, such as 90s, 30m, 24h or 7d; 0s = not.")
    ] = "24h",
    reason: Reason = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Give a key its next generation, shown once; the one before goes on for the overlap. Scopes and end stay.

    Example: enginehouse keys rotate acme-app --overlap 7d
    """
    seconds = _seconds(overlap)
    api, path = Api.connect(server, token, profile), member("keys", key_id)
    _, etag = api.get_with_etag(path)
    _show_new(api.post(f"{path}/rotate", {"overlap_seconds": seconds}, etag=etag, reason=reason), output)


@app.command("delete")
def delete(
    key_id: Id,
    reason: Reason = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
) -> None:
    """Revoke a key, all generations of it.

    Example: enginehouse keys delete acme-app --reason 'it stood in a log'
    """
    api, path = Api.connect(server, token, profile), member("keys", key_id)
    _, etag = api.get_with_etag(path)
    api.delete(path, etag=etag, reason=reason)
    tell(f"key {key_id} removed")


def _show_new(created: Document, output: Format) -> None:
    key = str(created.get("key"))
    row = {"key": key, "id": name_of(created), "tenant": created["spec"]["tenant"]}
    emit(created, output=output, rows=[row], names=[key])
    tell(SHOWN_ONCE)


def _row(item: Document) -> Row:
    spec, status = item["spec"], item.get("status") or {}
    return {
        "name": name_of(item),
        "tenant": spec["tenant"],
        "prefix": status.get("prefix"),
        "generation": item["metadata"].get("generation"),
        "models": cell(spec.get("models", [])) or "all",
        "expires": spec.get("expires"),
        "earlier ones end": ", ".join(str(earlier["ends"]) for earlier in status.get("ending", ())) or None,
    }


def _seconds(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9})([smhd])", text)
    if found is None:
        raise UsageError(f"--overlap {text!r} is no time; write a whole number and s, m, h or d, such as 24h")
    return int(found[1]) * _UNITS[found[2]]
