"""What commands print: tables for people, JSON, YAML and names for scripts. Data to stdout, talk to stderr."""

import json
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, TextIO

import typer

from cli.columns import Row
from cli.table import table


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


def _json(data: object) -> str:
    """JSON that any reader takes: escaped where a name is not text (a folder of raw bytes)."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(data, indent=2, allow_nan=False)
    return text


def _yaml(data: object) -> str:
    import io

    from ruamel.yaml import YAML

    stream = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.width = 120
    yaml.dump(data, stream)
    return stream.getvalue()
