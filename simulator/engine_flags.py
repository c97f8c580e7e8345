"""Reads a real engine's own command line and keeps the flags that the simulator understands."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

_Number = TypeVar("_Number", int, float)

LIST_FLAGS = frozenset({"served-model-name", "api-key", "lora-modules", "lora-paths", "api-keys", "adapters"})
_SUFFIXES = {"k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class CommandLineError(ValueError):
    """A flag is missing its value or has one that cannot be read."""


@dataclass(frozen=True, slots=True)
class EngineFlags:
    """The flags of one command line by name (no dashes, `_` written as `-`), and the words between them."""

    values: Mapping[str, tuple[str, ...]]
    words: tuple[str, ...]

    def has(self, *names: str) -> bool:
        """Tell whether one of the flags was given and not negated."""
        return any(name in self.values and self.values[name] != ("false",) for name in names)

    def many(self, *names: str) -> tuple[str, ...]:
        """Return all values of the first flag that was given, else none."""
        return next((self.values[name] for name in names if name in self.values), ())

    def text(self, *names: str) -> str | None:
        """Return the last value of the first flag that was given; `None` when absent."""
        found = self.many(*names)
        return found[-1] if found else None

    def number(self, *names: str) -> int | None:
        """Return a whole number, `8k` and `2M` included; `None` when absent."""
        return self._read(names, _whole)

    def seconds(self, *names: str) -> float | None:
        """Return a number of seconds; `None` when absent."""
        return self._read(names, float)

    def _read(self, names: Sequence[str], read: Callable[[str], _Number]) -> _Number | None:
        value = self.text(*names)
        if value is None:
            return None
        try:
            return read(value)
        except ValueError as error:
            given = next(name for name in names if name in self.values)
            raise CommandLineError(f"--{given} is {value!r}; a number is needed, for example --{given} 8") from error


def read_engine_flags(argv: Sequence[str]) -> EngineFlags:
    """Split an engine's argv into flags and words; `--a b`, `--a=b` and bare `--a` are all read."""
    values: dict[str, tuple[str, ...]] = {}
    words: list[str] = []
    rest = list(argv)
    while rest:
        item = rest.pop(0)
        if not item.startswith("--"):
            words.append(item)
            continue
        name, equals, value = item[2:].partition("=")
        name = name.replace("_", "-")
        found = [value] if equals else _values_that_follow(name, rest)
        if name.startswith("no-"):
            name, found = name[3:], ["false"]
        values[name] = values.get(name, ()) + tuple(found) if name in LIST_FLAGS else tuple(found)
    return EngineFlags(values, tuple(words))


def _values_that_follow(name: str, rest: list[str]) -> list[str]:
    found: list[str] = []
    while rest and not rest[0].startswith("--") and (not found or name in LIST_FLAGS):
        found.append(rest.pop(0))
    return found


def _whole(text: str) -> int:
    factor = _SUFFIXES.get(text[-1:])
    return int(float(text[:-1]) * factor) if factor else int(text)


def takes_images(flags: EngineFlags) -> bool:
    """Tell whether the command line lets pictures in: `--limit-mm-per-prompt` with a count above zero."""
    limit = flags.text("limit-mm-per-prompt")
    if limit is None:
        return False
    try:
        counts = json.loads(limit)
    except ValueError as error:
        raise CommandLineError(f'--limit-mm-per-prompt is {limit!r}; JSON like {{"image": 1}} is needed') from error
    return isinstance(counts, dict) and any(isinstance(count, dict) or count > 0 for count in counts.values())
