"""``enginehouse audit``: who changed what, and the proof that no event was changed, dropped or moved."""

from collections.abc import Iterator
from typing import Annotated

import typer

from cli.client import Api, ProfileOption, ServerOption, TokenOption
from cli.exits import Exit
from cli.output import Format, Output, emit, tell
from fleet.audit import AuditEvent, ChainHead, cut_off, first_break

app = typer.Typer(no_args_is_help=True, help="The audit log, and the proof that it is whole.")


@app.command("list")
def list_events(
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most this many, oldest first.")] = 200,
    server: ServerOption = None,
    token: TokenOption = None,
    profile: ProfileOption = None,
    output: Output = Format.TABLE,
) -> None:
    """List audit events."""
    api = Api.connect(server, token, profile)
    items = [item for item, _ in zip(api.every("/v1/audit-events"), range(limit), strict=False)]
    shown = ("sequence", "time", "actor", "action", "name", "reason")
    rows = [{key: item.get(key) for key in shown} for item in items]
    emit({"items": items}, output=output, rows=rows, names=[str(item["sequence"]) for item in items])


@app.command()
def verify(
    server: ServerOption = None, token: TokenOption = None, profile: ProfileOption = None, output: Output = Format.TABLE
) -> None:
    """Check the hash chain of all events here, not on the server; exit 1 where it breaks."""
    api = Api.connect(server, token, profile)
    reached = ChainHead()

    def events() -> Iterator[AuditEvent]:
        nonlocal reached
        for item in api.every("/v1/audit-events"):
            event = AuditEvent.model_validate(item)
            yield event
            reached = ChainHead(sequence=event.sequence, hash=event.hash)

    # The stated end is read first: events written while the chain is read only make it longer.
    stated = ChainHead.model_validate(api.get("/v1/audit-events:head"))
    broken = first_break(events())
    if broken is None and reached.sequence < stated.sequence:
        broken = cut_off(reached, stated)
    result = {"valid": broken is None, "events": reached.sequence, "head": reached.hash}
    emit(result | {"break": broken and broken.model_dump()}, output=output, rows=[result])
    if broken is not None:
        tell(f"the chain breaks at event {broken.sequence}: {broken.message}")
        raise typer.Exit(Exit.FAILED)
