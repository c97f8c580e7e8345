"""What commands print: tables for people, JSON, YAML and names for scripts. Data to stdout, talk to stderr."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, TextIO

import typer

Row = Mapping[str, object]


class Format(StrEnum):
    """How data is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


Output = Annotated[Format, typer.Option("--output", "-o", help="How to print: for people or for scripts.")]


def tell(message: str) -> None:
    """Say something to a person, on stderr; where that can't be written, the work goes on without words."""
    try:
        typer.echo(message, err=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Let a stream that can't be written lead nowhere: the interpreter flushes what is left of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def say(message: str) -> None:
    """A sentence that is part of the answer for people, on stdout beside the table."""
    typer.echo(message)


def emit(data: object, *, output: Format, rows: Iterable[Row] = (), names: Iterable[str] = (), title: str = "") -> None:
    """Print data in the wished form; ``rows`` are what a table shows and ``names`` what ``-o name`` does."""
    if output is Format.JSON:
        typer.echo(_json(data))
    elif output is Format.YAML:
        typer.echo(_yaml(data), nl=False)
    elif output is Format.NAME:
        for name in names:
            typer.echo(name)
    else:
        table(list(rows), title=title)


def table(rows: Sequence[Row], *, title: str = "") -> None:
    """A table with the keys of the first row as its head; an empty one says so."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else 160, soft_wrap=False)
    if not rows:
        console.print(Text(f"{title} (nothing to list)" if title else "nothing to list"))
        return
    heading = Text(title) if title else None
    grid = Table(title=heading, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for head in rows[0]:
        grid.add_column(Text(head.replace("_", " ").upper()), overflow="fold")
    for row in rows:
        grid.add_row(*(Text(_cell(value), style=_style(value)) for value in row.values()))
    console.print(grid)


def _json(data: object) -> str:
    """JSON that any reader takes: escaped where a name is not text (a folder of raw bytes)."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, indent=2, allow_nan=False)
    return text


_STYLES = {
    "affected": "red",
    "mandatory": "red",
    "no_fix_known": "yellow",
    "unknown": "yellow",
    "not_affected": "green",
}


def _style(value: object) -> str:
    return _STYLES.get(str(value), "")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "-"
    return str(value)


def _yaml(data: object) -> str:
    import io

    from ruamel.yaml import YAML

    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 120
    yaml.dump(data, stream)
    return stream.getvalue()
