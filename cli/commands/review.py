"""``enginehouse review``: judge manifests by the rules that every other room uses."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.exits import Exit
from cli.facts_at_hand import DataOption, EnvironmentOfFilesOption, FactsOption, PolicyOption, facts_for, where_from
from cli.manifests import read_manifest
from cli.output import Format, Output, emit, say
from cli.pin_hint import pin_hint
from cli.table import paragraph
from cli.violations import show_violations
from fleet.manifest import AnyManifest, PinnedManifest
from fleet.rules import review as review_manifest
from fleet.violation import Violation, refuses


def review(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Written or pinned manifests.")],
    environment: EnvironmentOfFilesOption = None,
    data: DataOption = None,
    policy: PolicyOption = None,
    bundle: FactsOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Say which rules manifests break and what stays unknown about them; exit 3 if any is refused.

    [dim]Example:[/dim] enginehouse review examples/runbook-2026/*.yaml
    """
    from engines.catalogue import load

    catalogue = load()
    known = facts_for(files, environment, data, policy, catalogue.digest, bundle=bundle)
    manifests = [(path, read_manifest(path)) for path in files]
    reviewed = [Reviewed(path, item, review_manifest(item, known, catalogue)) for path, item in manifests]
    refused = [item for item in reviewed if refuses(item.violations)]
    if output is Format.TABLE:
        _show(reviewed)
        say(f"{len(refused)} of {len(reviewed)} refused")
        paragraph(where_from(known))
    else:
        origin = {
            "digest": known.digest,
            "as_of": known.as_of,
            "source": known.data.source,
            "environment": known.environment,
        }
        document = {"manifests": [_document(item) for item in reviewed], "facts": origin}
        emit(document, output=output, names=[str(item.path) for item in refused])
    if refused:
        raise typer.Exit(Exit.REFUSED)


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One file with what the rules say about it."""

    path: Path
    manifest: AnyManifest
    violations: list[Violation]


def _show(reviewed: list[Reviewed]) -> None:
    for item in reviewed:
        verdict = "refused" if refuses(item.violations) else "accepted"
        show_violations(item.violations, title=f"{item.manifest.name} ({item.path}): {verdict}")
        if not isinstance(item.manifest, PinnedManifest):
            for line in pin_hint([violation.model_dump() for violation in item.violations], str(item.path)):
                say(line)


def _document(item: Reviewed) -> dict[str, object]:
    return {
        "file": str(item.path),
        "name": item.manifest.name,
        "identity": item.manifest.identity if isinstance(item.manifest, PinnedManifest) else None,
        "refused": refuses(item.violations),
        "violations": [violation.model_dump(mode="json") for violation in item.violations],
    }
