"""``enginehouse advisories show``: everything that is known about one advisory."""

from typing import Annotated

import typer

from cli import advisory_card as card
from cli.completion import advisory_ids
from cli.exits import CommandError, Exit
from cli.facts_at_hand import DataOption, advisory_data, where_from
from cli.output import Format, Output, emit, say
from cli.table import paragraph, table
from fleet.advisory import Advisory
from fleet.facts import AdvisoryData


def show(
    advisory: Annotated[
        str,
        typer.Argument(metavar="ID", help="An id or any alias: CVE, GHSA, PYSEC, ...", autocompletion=advisory_ids),
    ],
    data: DataOption = None,
    output: Output = Format.TABLE,
) -> None:
    """Show one advisory: its names, ratings, ranges and code paths, and which published versions it hits.

    [dim]Example:[/dim] enginehouse advisories show CVE-2026-48746
    """
    known = advisory_data(data)
    found = card.find(known, advisory)
    if found is None:
        raise CommandError(_not_found(known, advisory), Exit.NOT_FOUND_OR_CONFLICT)
    if output is Format.TABLE:
        _show(found, known)
        say(where_from(known))
        return
    origin = {"digest": known.digest, "as_of": known.as_of, "source": known.source}
    emit(card.document(found, known) | {"facts": origin}, output=output, names=[found.id])


def _not_found(data: AdvisoryData, wanted: str) -> str:
    broken = next((item for item in data.quarantined if item.id == wanted), None)
    if broken:
        return f"the record {wanted} can't be read ({broken.source}: {broken.reason})"
    close = card.nearest_ids(data, wanted)
    beside = f"; nearest to it: {', '.join(close)}" if close else "; 'enginehouse advisories list' shows them all"
    return f"no advisory '{wanted}' in {data.source or 'the data'}{beside}"


def _show(found: Advisory, data: AdvisoryData) -> None:
    say(found.id)
    if found.aliases:
        paragraph(f"also: {', '.join(found.aliases)}")
    if found.is_malware:
        say("a malicious release: it is always refused")
    if found.incomplete_fix_of:
        paragraph(f"the fix was incomplete of: {', '.join(found.incomplete_fix_of)}")
    table(card.source_rows(found), title="what each source says")
    table(card.range_rows(found), title="versions, as each source states them")
    table(card.package_rows(found, data), title="published versions, by what all sources together say")
    for url in card.links(found):
        say(f"see {url}")
