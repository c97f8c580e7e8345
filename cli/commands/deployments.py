"""``enginehouse deployments``: what runs, whether it still keeps the rules, and changes to it."""

import difflib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.client import Api, Document, ProfileOption, ServerOption, TokenOption, member
from cli.columns import Shortened
from cli.exits import CommandError, Exit, UsageError
from cli.manifests import read_manifest
from cli.output import Format, Output, emit, say, tell
from cli.table import table
from cli.violations import show_violations
from fleet.manifest import PinnedManifest

app = typer.Typer(no_args_is_help=True, help="Deployments: list, get, apply, diff, accept, delete.")
SHOWN_IDENTITY_DIGITS = 12
"""What a terminal shows of an identity; pipes and ``-o json`` have all 32 digits."""
Name = Annotated[str, typer.Argument(help="The deployment's name.")]
Files = Annotated[list[Path], typer.Argument(metavar="FILE...", help="Pinned manifests.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why; it stands in the audit log.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command("list")
def list_deployments(
    server: ServerOption = None, token: TokenOption = None, profile: ProfileOption = None, output: Output = Format.TABLE
) -> None:
    """List deployments with their engine, phase and whether they keep the rules."""
    # 'basic' leaves out model, engine and proposal, which every form but names shows.
    view = "basic" if output is Format.NAME else None
    items = list(Api.connect(server, token, profile).every("/v1/deployments", view=view))
    rows = [_row(item) for item in items] if output is Format.TABLE else []
    emit({"items": items}, output=output, rows=rows, names=[_name(item) for item in items])


@app.command()
def get(
    name: Name,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Show one deployment with its conditions, residuals and proposal."""
    item = Api.connect(server, token, profile).get(member("deployments", name))
    emit(item, output=output, rows=[_row(item)], names=[_name(item)])
    if output is Format.TABLE:
        status = item.get("status") or {}
        table(_conditions(item), title="conditions")
        if status.get("proposal"):
            say(f"proposal: {status['proposal'].get('reason')}; take it with 'enginehouse deployments accept {name}'")


@app.command()
def apply(
    files: Files,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Review only; store nothing.")] = False,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Create or replace deployments from pinned manifests; exit 3 if the rules refuse one."""
    api = Api.connect(server, token, profile)
    applied = []
    for manifest in [_pinned(path) for path in files]:
        path = member("deployments", manifest.name)
        found = api.find(path)
        body = manifest.model_dump(mode="json", exclude_none=True)
        applied.append(api.put(path, body, etag=found[1] if found else None, dry_run=dry_run))
    if dry_run:
        _show_plans(applied, output)
        return
    emit({"items": applied}, output=output, rows=[_row(i) for i in applied], names=[_name(i) for i in applied])


def _show_plans(plans: list[Document], output: Format) -> None:
    """What a dry run found; exit 3 if the rules refuse any of it."""
    rows = [
        {"name": plan["name"], "action": plan["action"], "refused": plan["refused"], "changes": len(plan["changes"])}
        for plan in plans
    ]
    emit({"items": plans}, output=output, rows=rows, names=[str(plan["name"]) for plan in plans])
    if output is Format.TABLE:
        for plan in plans:
            show_violations(plan["violations"], title=str(plan["name"]))
    if any(plan["refused"] for plan in plans):
        raise typer.Exit(Exit.REFUSED)


@app.command()
def diff(files: Files, server: ServerOption = None, token: TokenOption = None, profile: ProfileOption = None) -> None:
    """Show what 'apply' would change; exit 0 with or without a difference."""
    api = Api.connect(server, token, profile)
    for manifest in [_pinned(path) for path in files]:
        found = api.find(member("deployments", manifest.name))
        before = _lines(found[0]) if found else []
        after = _lines(manifest.model_dump(mode="json", exclude_none=True))
        changes = list(difflib.unified_diff(before, after, f"server/{manifest.name}", f"file/{manifest.name}", n=2))
        sys.stdout.writelines(changes)
        if not changes:
            tell(f"{manifest.name}: no difference")


@app.command()
def accept(
    name: Name,
    yes: Yes = False,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Take the pin that the control plane proposes after an advisory."""
    api = Api.connect(server, token, profile)
    item, etag = api.get_with_etag(member("deployments", name))
    proposal = (item.get("status") or {}).get("proposal")
    if not proposal:
        raise CommandError(f"{name} has no proposal; nothing to accept", Exit.NOT_FOUND_OR_CONFLICT)
    tell(f"{name}: {proposal.get('reason')}")
    api.tell_target()
    _confirm(yes, f"Roll {name} to the proposed pin?")
    changed = api.put(member("deployments", name), proposal["manifest"], etag=etag)
    emit(changed, output=output, rows=[_row(changed)], names=[_name(changed)])


@app.command()
def delete(
    name: Name,
    yes: Yes = False,
    reason: Reason = None,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
) -> None:
    """Drain and remove a deployment."""
    api = Api.connect(server, token, profile)
    _, etag = api.get_with_etag(member("deployments", name))
    api.tell_target()
    _confirm(yes, f"Drain and remove {name}?")
    api.delete(member("deployments", name), etag=etag, reason=reason)
    tell(f"{name} is being drained and removed")


def _confirm(yes: bool, question: str) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody can answer here; give --yes")
    if not typer.confirm(question, err=True):
        raise CommandError("nothing was changed")


def _pinned(path: Path) -> PinnedManifest:
    manifest = read_manifest(path)
    if not isinstance(manifest, PinnedManifest):
        raise UsageError(f"{path} is not pinned; run 'enginehouse pin --write {path}' and apply the pinned file")
    return manifest


def _lines(document: Document) -> list[str]:
    import json

    plain = {key: document[key] for key in ("metadata", "spec") if key in document}
    plain["metadata"] = {key: plain["metadata"].get(key) for key in ("name", "labels")}
    return [line + "\n" for line in json.dumps(plain, indent=1, sort_keys=True).splitlines()]


def _name(item: Document) -> str:
    return str(item["metadata"]["name"])


def _row(item: Document) -> dict[str, object]:
    spec: dict[str, Any] = item["spec"]
    status: dict[str, Any] = item.get("status") or {}
    engine = spec.get("engine") or spec.get("hosted") or {}
    identity = str(status.get("identity") or "")
    compliant = next((c["status"] for c in status.get("conditions", []) if c["type"] == "Compliant"), None)
    return {
        "name": _name(item),
        "model": spec["model"]["id"],
        "engine": f"{engine.get('name')} {engine.get('version') or ''}".strip(),
        "phase": status.get("phase"),
        "compliant": compliant,
        "identity": Shortened(identity, identity[:SHOWN_IDENTITY_DIGITS]),
        "proposal": "yes" if status.get("proposal") else None,
    }


def _conditions(item: Document) -> list[dict[str, object]]:
    conditions = (item.get("status") or {}).get("conditions", [])
    return [
        {key: c.get(key) for key in ("type", "status", "reason", "message", "lastTransitionTime")} for c in conditions
    ]
