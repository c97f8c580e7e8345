"""``enginehouse local``: the local fleet without the tour."""

import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.commands.demo import Engine, home_folder
from cli.exits import CommandError, Exit, UsageError
from cli.output import Format, Output, emit, tell
from local.errors import LocalFleetError
from local.layout import Layout, state_home
from local.start import Wishes

local_app = typer.Typer(no_args_is_help=True, help="The local fleet: up, down, status, token.")
StateOption = Annotated[Path | None, typer.Option("--state", help="Folder for state and logs.")]
PortOption = Annotated[int | None, typer.Option(min=1, max=65535, help="A port; default: a free one.")]
OWN_TOKENS = ("gateway", "operator")
"""Tokens that processes of the fleet and its person hold already: a new one of the name would lock them out."""


class TokenScope(StrEnum):
    """What a token may do."""

    GATEWAY = "gateway"
    READER = "reader"
    OPERATOR = "operator"
    SECURITY_ADMIN = "security-admin"


@local_app.command()
def up(
    state: StateOption = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Go on in the background.")] = False,
    engine: Annotated[Engine, typer.Option("--engine", help="Simulated engines, or an installed vLLM.")] = (
        Engine.SIMULATED
    ),
    gateway_port: PortOption = None,
    api_port: PortOption = None,
) -> None:
    """Start control plane, gateway and Envoy on this machine, and keep them running until Ctrl-C.

    The state stays between starts: deployments come back. The first token is shown once.
    """
    from cli.tour.household import foreground, in_background

    wishes = Wishes(engine=engine.value, gateway_port=gateway_port, api_port=api_port)
    layout = Layout(state.expanduser().absolute()) if state else Layout(_home() / "local")
    open_fleet = in_background if detach else foreground
    try:
        raise typer.Exit(
            open_fleet(layout, wishes, python=sys.executable, environment=dict(os.environ), say=typer.echo)
        )
    except LocalFleetError as error:
        raise CommandError(str(error)) from None


@local_app.command()
def down(state: StateOption = None) -> None:
    """End the local fleet, also after its supervisor was killed; without --state every fleet of yours."""
    from local.down import down as end_fleet

    failures: list[str] = []
    for layout in _layouts(state):
        try:
            found, left = end_fleet(layout)
        except LocalFleetError as error:
            failures.append(str(error))
            continue
        failures += left
        words = f"{found} processes ended" if found else "nothing was running"
        tell(f"{layout.state}: {words}")
    if failures:
        raise CommandError("; ".join(failures))


@local_app.command()
def status(
    state: StateOption = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit 3 unless a fleet runs and all of it is healthy.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Show each process of the local fleet: its id, its port, and whether it answers."""
    from local.status import FleetStatus
    from local.status import status as ask

    def ask_all() -> Iterable[FleetStatus]:
        try:
            yield from (ask(layout) for layout in _layouts(state))
        except LocalFleetError as error:
            raise CommandError(str(error)) from None

    fleets = list(ask_all())
    lines = [(fleet, line) for fleet in fleets for line in fleet.processes]
    rows = [
        {
            **line.model_dump(include={"process", "pid", "port", "healthy", "restarts", "detail"}),
            "state_folder": fleet.state_folder,
        }
        for fleet, line in lines
    ]
    document = {"fleets": [fleet.model_dump(mode="json") for fleet in fleets], "processes": rows}
    emit(document, output=output, rows=rows, names=[str(line.pid) for _, line in lines], title="local fleets")
    if fail and not (fleets and all(fleet.is_healthy for fleet in fleets)):
        raise typer.Exit(Exit.REFUSED)


@local_app.command()
def token(
    name: Annotated[str, typer.Argument(help="Who uses it; one of the same name stops working.")],
    scope: Annotated[TokenScope, typer.Option("--scope", help="What it may do; people's include the one before.")],
    state: StateOption = None,
) -> None:
    """Make an access token of the local fleet's admin API and print it once; it works at once.

    [dim]Example:[/dim] enginehouse local token alice --scope security-admin
    """
    from local import tokens
    from local.programs import find

    if name in OWN_TOKENS:
        raise UsageError(f"the token '{name}' is used by the fleet itself; take another name")
    layout = _one_that_was_started(_layouts(state))
    environment = dict(os.environ)
    try:
        programs = find(sys.executable, "simulated", environment=environment)
        typer.echo(tokens.issue(layout, programs, name, scope.value, environment=environment))
    except LocalFleetError as error:
        raise CommandError(str(error)) from None
    tell("the token is shown this once; store it now")


def _one_that_was_started(layouts: list[Layout]) -> Layout:
    """The fleet whose database gets the token.

    Raises:
        CommandError: there is none.
        UsageError: there are several, and nobody said which.
    """
    found = [layout for layout in layouts if layout.control_plane_settings.is_file()]
    if not found:
        message = f"no fleet was started in {layouts[0].state}; start one with 'enginehouse local up'"
        raise CommandError(message, Exit.NOT_FOUND_OR_CONFLICT)
    if len(found) > 1:
        raise UsageError(f"give one with --state: {', '.join(str(layout.state) for layout in found)}")
    return found[0]


def _home() -> Path:
    return state_home(dict(os.environ), home_folder(None))


def _layouts(state: Path | None) -> list[Layout]:
    """The named fleet, else every fleet below the state home: the one of `up` and those of demos."""
    if state is not None:
        return [Layout(state.expanduser().absolute())]
    home = _home()
    folders = sorted(path for path in home.iterdir() if path.is_dir()) if home.is_dir() else []
    return [Layout(path) for path in folders] or [Layout(home / "local")]
