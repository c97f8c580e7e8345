"""``enginehouse demo``: the local fleet with a tour, or to try things on."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.exits import UsageError


class Summary(StrEnum):
    """How the tour is told."""

    TABLE = "table"
    JSON = "json"


class Engine(StrEnum):
    """What stands behind the gateway."""

    SIMULATED = "simulated"
    VLLM = "vllm"


def demo(
    once: Annotated[bool, typer.Option("--once", help="Take the whole tour, print the evidence, end.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Say yes to the rollout that the tour proposes.")] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser.")] = False,
    engine: Annotated[Engine, typer.Option("--engine", help="Simulated engines, or an installed vLLM.")] = (
        Engine.SIMULATED
    ),
    state: Annotated[Path | None, typer.Option("--state", help="Folder for state and logs; default: a new one.")] = (
        None
    ),
    keep: Annotated[bool, typer.Option("--keep", help="Keep the folder for state and logs.")] = False,
    output: Annotated[Summary, typer.Option("--output", "-o", help="As it goes on, or one summary for scripts.")] = (
        Summary.TABLE
    ),
) -> None:
    """Start a local fleet and show what it does.

    Everything is real but the engines' answers: control plane, gateway, Envoy, advisories, rollout. Without --once the
    fleet stays up and three commands to try are printed; Ctrl-C ends it. Exit 1 names the step that failed.
    """
    from cli.tour.report import Report
    from cli.tour.show import Options, Show

    options = Options(
        once=once, yes=yes, opens_browser=not (no_open or once), engine=engine.value, state=state, keep=keep
    )
    show = Show(
        options=options,
        environment=dict(os.environ),
        home=home_folder(state),
        report=Report(as_json=output is Summary.JSON),
        agree=lambda question: _agree(question, yes=yes),
    )
    raise typer.Exit(show.run())


def _agree(question: str, *, yes: bool) -> bool:
    if yes:
        return True
    return sys.stdin.isatty() and typer.confirm(question, err=True)


def home_folder(state: Path | None) -> Path:
    """The person's home, below which the state lies unless a folder is given.

    Raises:
        UsageError: no home is known, and no folder is given.
    """
    try:
        return Path.home()
    except RuntimeError:
        if state is not None:
            return state
        raise UsageError("no home folder is known; give a folder with --state DIR") from None
