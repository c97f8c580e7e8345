"""Small nouns of the admin API: waivers and triage, each with list, create and delete."""

from datetime import datetime
from typing import Annotated

import typer

from cli.client import Api, Document, ProfileOption, ServerOption, TokenOption, member
from cli.output import Format, Output, emit, tell

waivers = typer.Typer(no_args_is_help=True, help="Exceptions with an owner and an end.")
triage = typer.Typer(no_args_is_help=True, help="People's word on advisories that data leaves open.")
Name = Annotated[str, typer.Argument(help="Its name.")]
Owner = Annotated[str, typer.Option("--owner", help="Who answers for it.")]
Reason = Annotated[str, typer.Option("--reason", help="Why.")]
Expires = Annotated[datetime, typer.Option("--expires", formats=["%Y-%m-%d"], help="The last day on which it holds.")]


def _list(path: str, api: Api, output: Format) -> None:
    items = list(api.every(path))
    emit({"items": items}, output=output, rows=[_row(item) for item in items], names=[_name(item) for item in items])


def _row(item: Document) -> dict[str, object]:
    return {"name": _name(item), **{key: value for key, value in item.get("spec", {}).items() if key != "name"}}


def _name(item: Document) -> str:
    return str(item["metadata"]["name"])


def _create(path: str, kind: str, name: str, spec: Document, api: Api, output: Format) -> Document:
    body = {"apiVersion": "enginehouse.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    found = api.find(path)
    created = api.put(path, body, etag=found[1] if found else None)
    emit(created, output=output, rows=[_row(created)], names=[name])
    return created


def _delete(path: str, api: Api) -> None:
    _, etag = api.get_with_etag(path)
    api.delete(path, etag=etag)
    tell(f"{path.rsplit('/', 1)[-1]} removed")


@waivers.command("list")
def list_waivers(
    server: ServerOption = None, token: TokenOption = None, profile: ProfileOption = None, output: Output = Format.TABLE
) -> None:
    """List waivers."""
    _list("/v1/waivers", Api.connect(server, token, profile), output)


@waivers.command("create")
def create_waiver(
    name: Name,
    identity: Annotated[str, typer.Option("--identity", help="The 32 hex digits of the pinned manifest.")],
    owner: Owner,
    reason: Reason,
    expires: Expires,
    advisory: Annotated[str | None, typer.Option("--advisory", help="The advisory that it waives.")] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="The rule that it waives.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Waive one advisory or one rule for one identity."""
    spec = {"identity": identity, "owner": owner, "reason": reason, "expires": expires.date().isoformat()}
    spec |= {key: value for key, value in (("advisory", advisory), ("rule", rule)) if value}
    _create(member("waivers", name), "Waiver", name, spec, Api.connect(server, token, profile), output)


@waivers.command("delete")
def delete_waiver(
    name: Name, server: ServerOption = None, token: TokenOption = None, profile: ProfileOption = None
) -> None:
    """End a waiver."""
    _delete(member("waivers", name), Api.connect(server, token, profile))


@triage.command("list")
def list_triage(
    server: ServerOption = None, token: TokenOption = None, profile: ProfileOption = None, output: Output = Format.TABLE
) -> None:
    """List triage entries."""
    _list("/v1/triage", Api.connect(server, token, profile), output)


@triage.command("create")
def create_triage(
    name: Name,
    package: Annotated[str, typer.Option("--package", help="The package that it is about.")],
    advisory: Annotated[str, typer.Option("--advisory", help="The advisory that it is about.")],
    status: Annotated[str, typer.Option("--status", help="fixed, not_affected or accepted.")],
    owner: Owner,
    reason: Reason,
    reference: Annotated[str, typer.Option("--reference", help="Where the finding can be read.")],
    expires: Expires,
    version: Annotated[list[str] | None, typer.Option("--version", help="Versions it holds for; default: all.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Write down what a person found out about a residual."""
    spec: Document = {
        "package": package,
        "advisory": advisory,
        "status": status,
        "owner": owner,
        "reason": reason,
        "reference": reference,
        "expires": expires.date().isoformat(),
        "versions": version or [],
    }
    _create(member("triage", name), "Triage", name, spec, Api.connect(server, token, profile), output)


@triage.command("delete")
def delete_triage(
    name: Name, server: ServerOption = None, token: TokenOption = None, profile: ProfileOption = None
) -> None:
    """Remove a triage entry."""
    _delete(member("triage", name), Api.connect(server, token, profile))
