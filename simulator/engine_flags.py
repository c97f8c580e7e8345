"""Reads a real engine's own command line and keeps the flags that the simulator understands."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_Number = TypeVar("_Number", int, float)

LIST_FLAGS = frozenset({"served-model-name", "api-key", "lora-modules", "lora-paths", "api-keys", "adapters"})
MOST_IMAGES = 999
"""Images that a prompt may hold when no limit is given."""

_SEEING = re.compile(r"(?i)-vl\b|vision|omni|pixtral|llava|internvl|gemma-3|llama-4|multimodal")
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


def image_limit(flags: EngineFlags, model: str, *, sees_images: bool) -> int | None:
    """Return how many images a prompt may hold; `None` for a model that sees none.

    The model is taken to see images when its name says so, when a limit above zero is given, or when told.
    """
    given = flags.text("limit-mm-per-prompt", "limit-mm-data-per-request")
    limits = {} if given is None else _json_object(given)
    limit = limits.get("image", MOST_IMAGES)
    limit = limit.get("count", MOST_IMAGES) if isinstance(limit, dict) else limit
    if not isinstance(limit, int):
        raise CommandLineError(f"the image limit is {limit!r}; a whole number is needed")
    opened = limit > 0 and "image" in limits
    return limit if sees_images or opened or _SEEING.search(model) else None


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CommandLineError(f'--limit-mm-per-prompt is {text!r}; JSON like {{"image": 1}} is needed') from error
    if not isinstance(found, dict):
        raise CommandLineError(f'--limit-mm-per-prompt is {text!r}; JSON like {{"image": 1}} is needed')
    return found
