"""``enginehouse facts``: what answers stand on, and the bundle of a server for use without one."""

from pathlib import Path
from typing import Annotated

import typer

from cli.client import Api, ProfileOption, ServerOption, TokenOption
from cli.exits import CommandError
from cli.facts_at_hand import DataOption, EnvironmentOption, PolicyOption, facts
from cli.output import Format, Output, emit, tell
from sources.errors import SourceError
from sources.whole_file import write_whole

app = typer.Typer(no_args_is_help=True, help="Where facts come from; pull them from a server.")


@app.command()
def show(
    environment: EnvironmentOption = "local",
    data: DataOption = None,
    policy: PolicyOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Say which advisories, versions and exceptions are at hand, how old they are and where they come from."""
    from engines.catalogue import load

    found = facts(environment, data, policy, load().digest)
    summary = {
        "environment": found.environment,
        "digest": found.digest,
        "as_of": found.as_of,
        "source": found.data.source,
        "age_days": found.advisory_age_days(),
        "advisories": len(found.data.advisories),
        "records": sum(len(advisory.records) for advisory in found.data.advisories),
        "quarantined": len(found.data.quarantined),
        "unknown_keys_ignored": found.data.unknown_keys_ignored,
        "published_retrieved": found.data.published_retrieved,
        "waivers": len(found.waivers),
        "triage": len(found.triage),
        "images": len(found.images),
        "catalogue_digest": found.catalogue_digest,
    }
    rows = [{"fact": key, "value": value} for key, value in summary.items()]
    emit(summary, output=output, rows=rows, names=[found.digest])


@app.command()
def pull(
    target: Annotated[Path, typer.Option("--to", help="The file to write.")] = Path("facts.json"),
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
) -> None:
    """Store a server's facts in a file, for 'review --facts' and 'pin --facts' without the server."""
    import json

    document = Api.connect(server, token, profile).get("/v1/facts")
    try:
        write_whole(target, json.dumps(document, ensure_ascii=False).encode())
    except SourceError as error:
        raise CommandError(str(error)) from None
    tell(f"wrote {target}: {document.get('digest', 'digest unknown')} as of {document.get('as_of', 'unknown')}")
