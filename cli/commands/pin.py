"""``enginehouse pin``: fix all four parts of written manifests, and say why each other candidate was not taken."""

from pathlib import Path
from typing import Annotated

import typer

from cli.exits import CommandError, Exit, UsageError
from cli.facts_at_hand import DataOption, EnvironmentOfFilesOption, FactsOption, PolicyOption, facts_for, where_from
from cli.manifests import read_manifest
from cli.output import Format, Output, emit, say, tell
from cli.placement_card import show_choice
from cli.table import paragraph
from fleet.facts import Facts
from fleet.manifest import Manifest, PinnedManifest
from fleet.placement import Choice, choose
from fleet.placement.comments import decision_lines
from fleet.placement.document import choice_document
from fleet.rules import stale
from sources import manifest_file
from sources.errors import SourceError


def pin(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Written manifests.")],
    environment: EnvironmentOfFilesOption = None,
    write: Annotated[bool, typer.Option("--write", help="Write NAME.pinned.yaml beside each file.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 3 if a pinned file is missing or stale.")] = False,
    data: DataOption = None,
    policy: PolicyOption = None,
    bundle: FactsOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Fix model, engine, batch and hardware of manifests, like a lock file.

    Prints the choice and every rejected candidate with its reason. Without a known image digest nothing is written.

    [dim]Example:[/dim] enginehouse pin environments/prod/support-chat.yaml --env prod --write
    """
    from engines.catalogue import load

    if write and check:
        raise UsageError("--write and --check exclude each other; --check only compares")
    catalogue = load()
    known = facts_for(files, environment, data, policy, catalogue.digest, bundle=bundle)
    written = _written(files)
    choices = [(path, manifest, choose(manifest, known, catalogue)) for path, manifest in written]
    problems = [_stale(path, manifest) for path, manifest in written] if check else []
    if write:
        for path, _, choice in choices:
            _write(path, choice)
    _show(choices, problems, known, output)
    complete = all(choice.pinned and _canary_is_pinned(choice) for _, _, choice in choices)
    if not complete or any(problems):
        raise typer.Exit(Exit.REFUSED)


def _written(files: list[Path]) -> list[tuple[Path, Manifest]]:
    """The written manifests among the files: a glob that also finds pinned ones works a second time."""
    manifests = [(path, read_manifest(path)) for path in files]
    found = [(path, item) for path, item in manifests if isinstance(item, Manifest)]
    if not found:
        raise UsageError(f"{files[0]} is already pinned; give the written manifest")
    return found


def _canary_is_pinned(choice: Choice) -> bool:
    return choice.canary is None or choice.canary.pinned is not None


def _stale(path: Path, manifest: Manifest) -> str | None:
    """What is wrong with the pinned file of a manifest, or ``None``."""
    beside = manifest_file.pinned_path(path)
    if not beside.exists():
        return f"{beside} is missing; run 'enginehouse pin --write {path}'"
    pinned = read_manifest(beside)
    if not isinstance(pinned, PinnedManifest):
        return f"{beside} is not a pinned manifest; run 'enginehouse pin --write {path}'"
    violations = stale(manifest, pinned)
    return f"{beside}: {violations[0].message}; {violations[0].remedy}" if violations else None


def _write(path: Path, choice: Choice) -> None:
    arms = [(manifest_file.pinned_path(path), choice)]
    if choice.canary is not None:
        arms.append((manifest_file.canary_path(path), choice.canary))
    for target, arm in arms:
        if arm.pinned is None:
            tell(f"{target} not written: a part is missing or refused")
            continue
        try:
            manifest_file.write(target, arm.pinned, comments=decision_lines(arm))
        except SourceError as error:
            raise CommandError(str(error)) from None
        tell(f"wrote {target} ({arm.pinned.identity})")


def _show(
    choices: list[tuple[Path, Manifest, Choice]], problems: list[str | None], known: Facts, output: Format
) -> None:
    data = {
        "manifests": [
            {"file": str(path), "name": item.name, **choice_document(choice)} for path, item, choice in choices
        ],
        "stale": [problem for problem in problems if problem],
        "facts": {
            "digest": known.digest,
            "as_of": known.as_of,
            "source": known.data.source,
            "environment": known.environment,
        },
    }
    names = [choice.pinned.identity for _, _, choice in choices if choice.pinned]
    if output is not Format.TABLE:
        emit(data, output=output, names=names)
        return
    for _, manifest, choice in choices:
        show_choice(manifest.name, choice)
    for problem in filter(None, problems):
        say(f"stale: {problem}")
    paragraph(where_from(known))
