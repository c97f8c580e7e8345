"""What is wrong with the flags that a manifest gives: each message says which version has it or what would be right."""

from collections.abc import Iterator

from engines.draft import takes_no_value
from engines.flags import NEGATIVE, Flag
from engines.wishes import Wish
from fleet.engine import FlagProblem
from fleet.spec import FlagValue

_NUMBERS = {"int": "a whole number", "float": "a number"}


def flag_problems(wish: Wish) -> Iterator[FlagProblem]:
    """Flags that the version lacks, that it does not take with this value, or that the manifest says elsewhere."""
    for spelling, value in wish.given.items():
        message = _problem(wish, spelling, value)
        if message is not None:
            yield FlagProblem(spelling, message)


def _problem(wish: Wish, spelling: str, value: FlagValue) -> str | None:
    if not spelling.startswith("--"):
        return f"{spelling} is not a long spelling; flags are written with their leading dashes, such as --{spelling}"
    flag = wish.flags.flag(spelling)
    if flag is None:
        return _lacking(wish, spelling)
    owner = wish.table.owned.get(flag.name)
    if owner is not None:
        return f"{spelling} is set from {owner}; it can't be given as a flag"
    if flag.name in wish.table.refused:
        return f"{spelling} can't be given: {wish.table.refused[flag.name]}"
    return _contradiction(wish, flag, value) or _wrong_value(wish, spelling, flag, value)


def _contradiction(wish: Wish, flag: Flag, value: FlagValue) -> str | None:
    """A share of memory that the manifest states twice, and not alike."""
    support, granted = wish.table.memory_share, wish.hardware.memory_share if wish.hardware else None
    if support is None or flag.name != support.flag or granted in (None, value):
        return None
    return f"{flag.name} is {value}, but hardware.memory_share is {granted:g}; keep one of them"


def _lacking(wish: Wish, spelling: str) -> str:
    title = f"{wish.name} {wish.flags.version}"
    book = wish.flags.book
    known = spelling in book.spellings
    note = f" ({wish.flags.note})" if wish.flags.note else ""
    if known:
        return f"{spelling} is not in {title}; {book.where(spelling)}{note}"
    near = wish.flags.nearest(spelling)
    hint = f"; did you mean {near}?" if near else ""
    return f"{spelling} is not a flag of {title}{hint}{note}"


def _wrong_value(wish: Wish, spelling: str, flag: Flag, value: FlagValue) -> str | None:
    if takes_no_value(flag.kind):
        if isinstance(value, bool):
            return None
        negated = f" or {NEGATIVE}{flag.name.removeprefix('--')}" if flag.kind == "both" else ""
        return f"{spelling} takes no value (found {value!r}); write true for {flag.name}{negated}"
    if isinstance(value, bool):
        return f"{spelling} needs a value (found {value!r}){_taken(wish, spelling)}"
    if flag.type is not None and not _is_number(value, flag.type):
        return f"{spelling} takes {_NUMBERS[flag.type]}; found {value!r}"
    choices = wish.flags.choices(spelling)
    wrong = [item for item in _items(flag, value) if choices is not None and item not in choices]
    return f"{spelling} does not take {wrong[0]!r}{_taken(wish, spelling)}" if wrong else None


def _items(flag: Flag, value: FlagValue) -> list[str]:
    return str(value).split() if flag.kind == "list" else [str(value)]


def _taken(wish: Wish, spelling: str) -> str:
    choices = wish.flags.choices(spelling)
    return f"; in {wish.name} {wish.flags.version} it takes {', '.join(choices)}" if choices else ""


def _is_number(value: FlagValue, kind: str) -> bool:
    try:
        found = [int(item) if kind == "int" else float(item) for item in str(value).split()]
    except ValueError:
        return False
    return bool(found)
