"""``enginehouse routes``: how public models are served, and code paths that are closed at the door."""

from typing import Annotated

import typer

from cli.client import Api, Document, ProfileOption, ServerOption, TokenOption
from cli.closings import chosen_proposals, closed_path, proposed
from cli.completion import closable_paths
from cli.exits import CommandError, Exit
from cli.objects import Noun, Row, add_commands, cell, name_of
from cli.output import Format, Output, emit

app = typer.Typer(no_args_is_help=True, help="How public models are served; close a code path at the door.")
RouteName = Annotated[str, typer.Argument(help="The route's name, which is its public model unless it says another.")]
CodePath = Annotated[str, typer.Argument(metavar="PATH", help="The code path.", autocompletion=closable_paths)]


def _row(item: Document) -> Row:
    spec = item["spec"]
    closed = [f"{one['path']} ({one['reference']})" for one in spec.get("closed_paths", ())]
    arms = [f"{name} {arm.get('weight', 1.0):g}" for name, arm in spec.get("arms", {}).items()]
    return {
        "name": name_of(item),
        "model": spec.get("model", name_of(item)),
        "closed paths": ", ".join(closed) or None,
        "arms": ", ".join(arms) or None,
        "aliases": cell(spec.get("aliases", [])) or None,
        "fallbacks": cell(spec.get("fallbacks", [])) or None,
        "output_filter": spec.get("output_filter"),
    }


NOUN = Noun("routes", "Route", "route", _row)


@app.command("close")
def close(
    route: RouteName,
    path: CodePath,
    reference: Annotated[str, typer.Option("--reference", help="What refused clients are told, to ask with.")],
    owner: Annotated[str, typer.Option("--owner", help="Who answers for it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; for operators and the audit log.")],
    advisory: Annotated[
        str | None, typer.Option("--advisory", help="What it keeps out; clients and gateways never see it.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="The public model of a route that isn't there; none = its name.")
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Refuse requests with fields that reach a code path, until 'open'; a route that isn't there is made.

    Example: enginehouse routes close support-chat multimodal --reference EH-12 --owner ann --reason 'pin follows'
    """
    closed: Document = {"path": path, "reference": reference, "owner": owner, "reason": reason}
    if advisory is not None:
        closed["advisory"] = advisory

    def changed(spec: Document) -> Document:
        others = [item for item in spec.get("closed_paths", ()) if item["path"] != path]
        named = {"model": model} if model is not None else {}
        return {**spec, **named, "closed_paths": [*others, closed]}

    made = NOUN.change(Api.connect(server, token, profile), route, changed, reason=None)
    NOUN.show([made], output, whole=made)


@app.command("proposals")
def proposals(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="A public model; none = all.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """List code paths that could be closed, since a deployment has an open defect there; 'accept' closes them.

    Example: enginehouse routes proposals support-chat
    """
    found = proposed(Api.connect(server, token, profile), model)
    rows = [
        {
            "model": item["model"],
            "path": item["path"],
            "refused": item["refused"],
            "severity": item["severity"],
            "advisories": ", ".join(item["advisories"]),
            "deployments": ", ".join(item["deployments"]),
        }
        for item in found
    ]
    emit({"items": found}, output=output, rows=rows, names=[f"{item['model']} {item['path']}" for item in found])


@app.command("accept")
def accept(
    model: Annotated[str, typer.Argument(help="The public model.")],
    reference: Annotated[str, typer.Option("--reference", help="What refused clients are told, to ask with.")],
    owner: Annotated[str, typer.Option("--owner", help="Who answers for it.")],
    path: Annotated[
        list[str] | None,
        typer.Option("--path", help="A proposed code path; several times; none = all.", autocompletion=closable_paths),
    ] = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="Why; none = the advisories and deployments of the proposal.")
    ] = None,
    route: Annotated[
        str | None, typer.Option("--route", help="The name of a new route; none = the model's, where it is a name.")
    ] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Close the code paths that are proposed for a model; clients learn the reference alone.

    Example: enginehouse routes accept support-chat --reference EH-12 --owner ann
    """
    api = Api.connect(server, token, profile)
    chosen = chosen_proposals(proposed(api, model), model, path or [])
    added = [closed_path(item, reference, owner, reason) for item in chosen]
    name = chosen[0]["route"] or route or model
    named = {"model": model} if name != model else {}

    def changed(spec: Document) -> Document:
        return {**named, **spec, "closed_paths": [*spec.get("closed_paths", ()), *added]}

    made = NOUN.change(api, name, changed, reason=None)
    NOUN.show([made], output, whole=made)


@app.command("open")
def open_path(
    route: RouteName,
    path: CodePath,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; it stands in the audit log.")] = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Take requests again that reach a code path which was closed.

    Example: enginehouse routes open support-chat multimodal --reason 'vllm 0.33.0 is out'
    """
    api = Api.connect(server, token, profile)
    item, etag = api.get_with_etag(NOUN.path(route))
    closed = item["spec"].get("closed_paths", [])
    if path not in [one["path"] for one in closed]:
        shown = ", ".join(str(one["path"]) for one in closed) or "none"
        raise CommandError(f"'{path}' is not closed in {route}; closed are: {shown}", Exit.NOT_FOUND_OR_CONFLICT)
    item["spec"]["closed_paths"] = [one for one in closed if one["path"] != path]
    made = api.put(NOUN.path(route), item, etag=etag, reason=reason)
    NOUN.show([made], output, whole=made)


add_commands(app, NOUN)
