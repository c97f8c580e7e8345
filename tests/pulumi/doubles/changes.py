"""What changed between two sets of inputs, and what each change does: ``changes.psv`` knows, nothing else does."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("changes.psv")


class UnlistedChange(Exception):
    """A property changed that the table doesn't have."""


@dataclass(frozen=True)
class Row:
    """What a change of a property of a type does."""

    token: str
    """The type; ``kubernetes:*`` = every type of the provider."""
    path: str
    effect: str
    """``update``, ``replace``, or ``replace`` with a condition; the head of the table lists them."""
    source: str


def read_rows(path: Path = TABLE) -> dict[tuple[str, str], Row]:
    """The table; a line that is none or stands there twice is an error."""
    found: dict[tuple[str, str], Row] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 4 or not all(cells):
            raise ValueError(f"{path.name}:{number}: four cells, all filled: type | property | effect | source")
        for name in cells[1].split():
            row = Row(cells[0], name, cells[2], cells[3])
            if (row.token, row.path) in found:
                raise ValueError(f"{path.name}:{number}: {row.token} {row.path} stands there twice")
            found[row.token, row.path] = row
    return found


def changed_paths(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The smallest paths whose values differ; elements of lists count as ``[n]``."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from changed_paths(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before, after = (side[index] if index < len(side) else None for side in (old, new))
            yield from changed_paths(before, after, f"{path}[{index}]")
    elif old != new:
        yield path


def effect_of(row: Row, old: Any, new: Any, inputs: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """``update`` or ``replace``, where the row has a condition by what it asks about."""
    kind, _, condition = row.effect.partition(" ")
    holds = {
        "": True,
        "if smaller": float(new or 0) < float(old or 0) if condition == "if smaller" else False,
        "if removed": old is not None and new is None,
    }
    if condition.startswith("unless setting "):
        is_so = settings.get(condition.removeprefix("unless setting ")) is not True
    elif condition.startswith("if input "):
        is_so = inputs.get(condition.removeprefix("if input ")) is True
    else:
        is_so = holds[condition]
    return kind if is_so else "update"


def row_of(rows: Mapping[tuple[str, str], Row], token: str, path: str) -> Row:
    """The row that fits a changed path best; none is an error."""
    words = re.sub(r"\[\d+\]", "", path).split(".")
    for length in range(len(words), 0, -1):
        here = ".".join(words[:length])
        row = rows.get((token, here)) or rows.get((f"{token.split(':')[0]}:*", here))
        if row is not None:
            return row
    raise UnlistedChange(
        f"{token}: {path} changed, and {TABLE.name} does not say what that does; "
        "add a line with its source: update or replace"
    )
