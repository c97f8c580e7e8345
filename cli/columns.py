"""Rows as text: one unwrapped line per record for programs, columns folded to the terminal for people."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cli.folding import padded, width_of

Row = Mapping[str, object]
GAP = "  "
NOTHING = "-"
PROSE_WORDS = 4
"""A column with a cell of so many words is prose: it gives way before names and ids do."""
COMFORTABLE = 30
"""Prose is not made narrower than this as long as something else can give way."""
NARROWEST_PROSE = 24
"""Below it, sentences stand better under their row."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A value that a terminal shows in part and a program gets in full."""

    full: str
    short: str

    def __str__(self) -> str:
        return self.full


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its head, its cells, and how far it can give way."""

    head: str
    cells: tuple[str, ...]

    @property
    def natural(self) -> int:
        """The width in which nothing is folded."""
        return max(map(width_of, (self.head, *self.cells)))

    @property
    def is_prose(self) -> bool:
        """Whether the cells are sentences rather than names, ids and lists of them."""
        return any(len([word for word in cell.split() if not word.endswith(",")]) >= PROSE_WORDS for cell in self.cells)

    @property
    def longest_word(self) -> int:
        """The width in which no word is broken."""
        return max(width_of(word) for text in (self.head, *self.cells) for word in text.split() or [""])


def lines(rows: Sequence[Row]) -> list[str]:
    """A head and one line per row, in full; two blanks or more stand between columns and nowhere else."""
    columns = columns_of(rows, is_short=False)
    widths = [column.natural for column in columns]
    texts = [[column.head for column in columns], *zip(*(column.cells for column in columns), strict=True)]
    return [GAP.join(map(padded, text, widths)).rstrip() for text in texts]


def columns_of(rows: Sequence[Row], *, is_short: bool) -> list[Column]:
    """The columns of rows, in the order in which the rows name them."""
    heads = dict.fromkeys(head for row in rows for head in row)
    return [
        Column(head.replace("_", " ").upper(), tuple(cell(row.get(head), is_short=is_short) for row in rows))
        for head in heads
    ]


def cell(value: object, *, is_short: bool) -> str:
    """One value as text of one line."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Shortened):
        return one_line(value.short if is_short else value.full) or NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(one_line(str(item)) for item in value) or NOTHING
    return one_line(str(value)) or NOTHING


def one_line(text: str) -> str:
    """Text without line breaks, tabs and signs that steer a terminal."""
    plain = " ".join(text.split())
    return plain if plain.isprintable() else "".join(map(_printable, plain))


def _printable(sign: str) -> str:
    return sign if sign.isprintable() else sign.encode("unicode_escape").decode()


def fitted(columns: Sequence[Column], width: int) -> list[int] | None:
    """Widths that fit the terminal without breaking a name or an id; ``None`` when there are none.

    Prose gives way first, then lists and names of several words, then prose once more.
    """
    room = width - len(GAP) * (len(columns) - 1)
    widths = [min(column.natural, room) for column in columns]
    floors = (
        [max(c.longest_word, min(c.natural, COMFORTABLE)) if c.is_prose else c.natural for c in columns],
        [max(c.longest_word, min(c.natural, COMFORTABLE)) if c.is_prose else c.longest_word for c in columns],
        [min(c.natural, NARROWEST_PROSE) if c.is_prose else c.longest_word for c in columns],
    )
    for floor in floors:
        widths = _shrunk(widths, floor, room)
        if sum(widths) <= room and all(width >= least for width, least in zip(widths, floor, strict=True)):
            return widths
    return None


def _shrunk(widths: Iterable[int], floors: Sequence[int], room: int) -> list[int]:
    """The widest column that may gives way, one sign after the other, until all fit or none may."""
    found = list(widths)
    while sum(found) > room:
        able = [index for index, width in enumerate(found) if width > floors[index]]
        if not able:
            break
        found[max(able, key=found.__getitem__)] -= 1
    return found
