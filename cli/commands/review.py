"""``enginehouse review``: judge manifests by the rules that every other room uses."""

from pathlib import Path
from typing import Annotated

import typer

from cli.exits import Exit
from cli.facts_at_hand import DataOption, EnvironmentOption, PolicyOption, facts, where_from
from cli.manifests import read_manifest
from cli.output import Format, Output, emit, table, tell
from cli.violations import violation_rows
from fleet.manifest import AnyManifest, PinnedManifest
from fleet.rules import review as review_manifest
from fleet.violation import refuses


def review(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Written or pinned manifests.")],
    environment: EnvironmentOption = "local",
    data: DataOption = None,
    policy: PolicyOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Say which rules manifests break and what stays unknown about them; exit 3 if any is refused.

    [dim]Example:[/dim] enginehouse review examples/runbook-2026/*.yaml
    """
    from engines.catalogue import load

    catalogue = load()
    known = facts(environment, data, policy, catalogue.digest)
    reviewed = [(path, manifest, review_manifest(manifest, known, catalogue)) for path, manifest in _read(files)]
    refused = [path for path, _, violations in reviewed if refuses(violations)]
    if output is Format.TABLE:
        for path, manifest, violations in reviewed:
            verdict = "refused" if refuses(violations) else "accepted"
            table(violation_rows(violations), title=f"{manifest.name} ({path}): {verdict}")
        tell(f"{len(refused)} of {len(reviewed)} refused")
        tell(where_from(known))
    else:
        emit(
            {
                "manifests": [
                    {
                        "file": str(path),
                        "name": manifest.name,
                        "identity": manifest.identity if isinstance(manifest, PinnedManifest) else None,
                        "refused": refuses(violations),
                        "violations": [item.model_dump(mode="json") for item in violations],
                    }
                    for path, manifest, violations in reviewed
                ],
                "facts": {"digest": known.digest, "as_of": known.as_of, "source": known.data.source},
            },
            output=output,
            names=map(str, refused),
        )
    if refused:
        raise typer.Exit(Exit.REFUSED)


def _read(files: list[Path]) -> list[tuple[Path, AnyManifest]]:
    return [(path, read_manifest(path)) for path in files]
