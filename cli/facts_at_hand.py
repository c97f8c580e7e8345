"""Where a command that needs no server takes its facts from: a server, folders, or the bundled snapshot."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.exits import UsageError
from cli.output import tell
from fleet.facts import AdvisoryData, Facts

DataOption = Annotated[
    list[Path] | None,
    typer.Option("--data", help="A folder of OSV JSON files (repeatable); replaces the bundled snapshot."),
]
EnvironmentOption = Annotated[
    str, typer.Option("--env", help="The environment whose policy, waivers, triage and images count.")
]
PolicyOption = Annotated[Path | None, typer.Option("--policy", help="A policy file instead of policies/policy.yaml.")]


def today() -> date:
    """The day on which the command runs, in UTC."""
    return datetime.now(UTC).date()


def advisory_data(folders: list[Path] | None) -> AdvisoryData:
    """Advisories from folders, else from the bundled snapshot; says on stderr what could not be read.

    Raises:
        UsageError: a folder that does not exist.
    """
    from sources import osv_folder, snapshot

    if not folders:
        return snapshot.bundled()
    missing = [folder for folder in folders if not folder.exists()]
    if missing:
        raise UsageError(f"--data {missing[0]}: no such file or folder; give a folder of OSV JSON files")
    data = osv_folder.read(folders, retrieved=today())
    for item in data.quarantined:
        tell(f"quarantined {item.source}: {item.reason}")
    return data


def facts(environment: str, folders: list[Path] | None, policy: Path | None, catalogue_digest: str) -> Facts:
    """The facts of an environment, from its files and the advisories at hand."""
    from sources import facts as reading
    from sources.errors import SourceError

    try:
        return reading.load(
            environment,
            today=today(),
            data=advisory_data(folders),
            policy=policy,
            catalogue_digest=catalogue_digest,
        )
    except SourceError as error:
        raise UsageError(str(error)) from None


def where_from(found: Facts | AdvisoryData) -> str:
    """One line that says which facts an answer stands on."""
    data = found.data if isinstance(found, Facts) else found
    digest = found.digest
    return f"facts {digest[:19]} as of {data.as_of or 'unknown'} from {data.source or 'unknown'}"
