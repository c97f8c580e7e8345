"""Tables: folded to the terminal for people, plain lines where the output is read by a program."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import typer

from cli.columns import GAP, NOTHING, Column, Row, columns_of, fitted, lines
from cli.folding import folded, padded

INDENT = "    "
MOST_BELOW = 3
"""Sentences, then so many columns less one stand below their row before each record becomes a block."""
_COLOURS = {
    "affected": typer.colors.RED,
    "mandatory": typer.colors.RED,
    "no_fix_known": typer.colors.YELLOW,
    "unknown": typer.colors.YELLOW,
    "not_affected": typer.colors.GREEN,
}


def table(rows: Sequence[Row], *, title: str = "") -> None:
    """A table whose head are the keys of its rows; an empty one says so."""
    if not rows:
        typer.echo(f"{title} (nothing to list)" if title else "nothing to list")
        return
    if title:
        typer.echo(title)
    width = _terminal_width()
    typer.echo("\n".join(lines(rows) if width is None else drawn(rows, width, is_coloured=_is_coloured())))


def paragraph(text: str, *, indent: str = "") -> None:
    """A line of the answer, folded with its indent where there is a terminal."""
    width = _terminal_width()
    parts = [text] if width is None else folded(text, max(width - len(indent), 1))
    hanging = " " * len(indent)
    typer.echo("\n".join((hanging if number else indent) + part for number, part in enumerate(parts)))


def drawn(rows: Sequence[Row], width: int, *, is_coloured: bool = False) -> Iterator[str]:
    """The lines of a table as wide as the terminal that breaks no name.

    Where columns would have to, sentences stand below their row, then the widest columns; where that is not enough,
    each record is a block.
    """
    columns = columns_of(rows, is_short=True)
    for beside in _choices(columns):
        widths = fitted(beside, width)
        if widths is not None:
            below = [column for column in columns if column not in beside]
            yield from _grid(beside, widths, below, width, is_coloured)
            return
    yield from _blocks(columns, width, is_coloured)


def _choices(columns: Sequence[Column]) -> Iterator[list[Column]]:
    """Which columns may stand beside each other, the most first."""
    yield list(columns)
    beside = [column for column in columns if not column.is_prose]
    for _ in range(MOST_BELOW):
        if beside:
            yield list(beside)
        if len(beside) > 1:
            beside.remove(max(beside[1:], key=lambda column: column.longest_word))


def _grid(
    columns: Sequence[Column], widths: Sequence[int], below: Sequence[Column], width: int, is_coloured: bool
) -> Iterator[str]:
    """Columns side by side, and what has no room there below its row."""
    yield from _row([column.head for column in columns], widths, is_coloured, is_head=True)
    for number, texts in enumerate(zip(*(column.cells for column in columns), strict=True)):
        yield from _row(texts, widths, is_coloured)
        for column in below:
            text = column.cells[number]
            named = text if len(below) == 1 else f"{column.head.lower()}: {text}"
            if text != NOTHING:
                yield from (INDENT + line for line in folded(named, max(width - len(INDENT), 1)))


def _blocks(columns: Sequence[Column], width: int, is_coloured: bool) -> Iterator[str]:
    """Each record as lines of head and value."""
    heads = max(len(column.head) for column in columns)
    widths = (heads, max(width - heads - len(GAP), 1))
    for number, texts in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if number:
            yield ""
        for column, text in zip(columns, texts, strict=True):
            yield from _row((column.head, text), widths, is_coloured)


def _row(texts: Sequence[str], widths: Sequence[int], is_coloured: bool, *, is_head: bool = False) -> Iterator[str]:
    """One row, in as many lines as its longest cell needs."""
    parts = [folded(text, width) for text, width in zip(texts, widths, strict=True)]
    colours = [_COLOURS.get(text) for text in texts]
    for found in zip_longest(*parts, fillvalue=""):
        cells = [padded(part, width) for part, width in zip(found, widths, strict=True)]
        cells[-1] = cells[-1].rstrip()
        if is_coloured:
            cells = [
                typer.style(cell, fg=fg, bold=is_head or None) if fg or is_head else cell
                for cell, fg in zip(cells, colours, strict=True)
            ]
        yield GAP.join(cells).rstrip()


def _terminal_width() -> int | None:
    """The columns of the terminal behind stdout; ``None`` when nobody looks."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _is_coloured() -> bool:
    return "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
