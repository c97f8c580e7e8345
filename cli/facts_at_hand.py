"""Where a command that needs no server takes its facts from: a server, folders, or the bundled snapshot."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer

from cli.exits import UsageError
from cli.output import tell
from fleet.facts import AdvisoryData, Facts
from fleet.policy import Policy

DataOption = Annotated[
    list[Path] | None,
    typer.Option("--data", help="A folder of OSV JSON files (repeatable); replaces the bundled snapshot."),
]
EnvironmentOption = Annotated[
    str, typer.Option("--env", help="The environment whose policy, waivers, triage and images count.")
]
EnvironmentOfFilesOption = Annotated[
    str | None,
    typer.Option(
        "--env",
        help="The environment whose policy, waivers, triage and images count; without it that of the files' folder, "
        "else local.",
    ),
]
PolicyOption = Annotated[Path | None, typer.Option("--policy", help="A policy file instead of policies/policy.yaml.")]


FactsOption = Annotated[
    Path | None, typer.Option("--facts", help="A bundle of 'facts pull': facts, policy and exceptions of a server.")
]


def today() -> date:
    """The day on which the command runs, in UTC."""
    return datetime.now(UTC).date()


def advisory_data(folders: list[Path] | None) -> AdvisoryData:
    """Advisories from folders, else from the bundled snapshot; says on stderr what could not be read.

    Raises:
        UsageError: a folder that does not exist or can't be listed.
    """
    from sources import snapshot
    from sources.errors import SourceError

    try:
        data = _of_folders(folders) if folders else snapshot.bundled()
    except SourceError as error:
        raise UsageError(str(error)) from None
    _tell_quarantined(data)
    _tell_age(data, today())
    return data


def _of_folders(folders: list[Path]) -> AdvisoryData:
    from sources import osv_folder  # what reads folders costs more to import than the snapshot costs to read

    return osv_folder.read(folders, retrieved=today())


def policy_of(environment: str, file: Path | None) -> Policy:
    """The policy of an environment.

    Raises:
        UsageError: a file that can't be read, or an environment that the policy does not name.
    """
    from sources import policy_file
    from sources.errors import SourceError

    try:
        return policy_file.policy_for(policy_file.read(file), environment)
    except SourceError as error:
        raise UsageError(str(error)) from None


def facts_for(
    files: list[Path],
    environment: str | None,
    folders: list[Path] | None,
    policy: Path | None,
    catalogue_digest: str,
    *,
    bundle: Path | None = None,
) -> Facts:
    """The facts by which manifests are judged: those of the environment in whose folder they lie.

    Raises:
        UsageError: as `facts` and `environment_of`, or a bundle of another environment than the files' or ``--env``.
    """
    from cli.environment_of import DEFAULT, environment_of

    place = environment_of(files, environment, is_bundled=bundle is not None)
    found = facts(place.name, folders, policy, catalogue_digest, bundle=bundle, environments_dir=place.parent)
    if found.environment != place.name and (environment or place.name != DEFAULT):
        raise UsageError(
            f"{bundle} holds the facts of environment '{found.environment}', the question is about '{place.name}'; "
            f"pull the facts of a server of '{place.name}'"
        )
    return found


def facts(
    environment: str,
    folders: list[Path] | None,
    policy: Path | None,
    catalogue_digest: str,
    *,
    bundle: Path | None = None,
    environments_dir: Path = Path("environments"),
) -> Facts:
    """The facts of a server's bundle, else of an environment's files and the advisories at hand.

    Raises:
        UsageError: a file that can't be read, an environment that the policy does not name, or a bundle beside other
            sources.
    """
    from sources import facts as reading
    from sources.errors import SourceError

    if bundle and (folders or policy):
        raise UsageError("--facts is the whole bundle of a server; leave --data and --policy out")
    try:
        if bundle:
            found = reading.read(bundle).model_copy(update={"today": today()})
        else:
            found = reading.load(
                environment,
                today=today(),
                data_dirs=folders or [],
                environments_dir=environments_dir,
                policy=policy,
                catalogue_digest=catalogue_digest,
            )
    except SourceError as error:
        raise UsageError(str(error)) from None
    _tell_quarantined(found.data)
    _tell_age(found.data, found.today)
    return found


def where_from(found: Facts | AdvisoryData) -> str:
    """One line that says which facts an answer stands on."""
    data = found.data if isinstance(found, Facts) else found
    line = f"facts {found.digest[:19]} as of {data.as_of or 'unknown'} from {data.source or 'unknown'}"
    return f"{line}; environment {found.environment}" if isinstance(found, Facts) else line


def _tell_quarantined(data: AdvisoryData) -> None:
    for item in data.quarantined:
        tell(f"quarantined {item.source}: {item.reason}")


def _tell_age(data: AdvisoryData, day: date) -> None:
    """How old the data is that answers stand on; ``local`` sets no limit, so a person has to see it."""
    if data.retrieved is None:
        tell(f"the age of the advisory data is not known; its newest record is of {data.as_of or 'an unknown day'}")
        return
    age = (day - data.retrieved).days
    if age > 0:
        tell(f"the advisory data is {age} {'day' if age == 1 else 'days'} old: read on {data.retrieved}")
