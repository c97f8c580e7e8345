"""Lists of modules as quantised checkpoints write them: names, parts of names, globs, regular expressions."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

_ROOTS = re.compile(r"^(?:(?:model|language_model|text_model|backbone|transformer|decoder|thinker)\.)+")
LONGEST_EXPRESSION = 500
MOST_EXPRESSIONS = 1_000
MOST_GLOBS = 500
MOST_BEGINNINGS = 10_000
"""No published checkpoint has more globs, of which by far the most leave only the end open."""
MOST_STEPS = 300_000
"""Estimated steps that all expressions together may take on one module."""
STEPS_OF_REPETITION = 50
"""A repetition multiplies the steps by about the length of a module's path."""
_REPEATED_GROUP = re.compile(r"\)[*+{]")
"""Could take for ever. Neither these nor very long expressions are used, nor more of them than a thousand or than the
steps allow; no published checkpoint has such."""
_EDGE = re.compile(r"^\^?(?:\.\*)+(?![?*+{])|(?<!\\)(?:\.\*)+\$?$")
_REPETITION = re.compile(r"[*+{]|(?<!\()\?")


def plain_name(name: str) -> str:
    """A module's path without the wrappers around the language model, which checkpoints spell in many ways."""
    return _ROOTS.sub("", name)


@dataclass(frozen=True)
class Modules:
    """A list of module patterns.

    A name covers everything under it, and a part of a path (``lm_head``, ``mlp.gate``) covers it wherever it stands.
    """

    patterns: tuple[str, ...] = ()

    @classmethod
    def of(cls, patterns: Iterable[str]) -> "Modules":
        """The list without repetitions, in its order."""
        return cls(tuple(dict.fromkeys(patterns)))

    def names(self, module: str) -> bool:
        """Whether a module is on the list."""
        if not self.patterns:
            return False
        plain = plain_name(module)
        return self._is_named(plain) or self._is_matched(plain, module)

    def _is_named(self, plain: str) -> bool:
        paths, bare, inner = self._names
        parts = plain.split(".")
        if not bare.isdisjoint(parts) or (inner and not inner.isdisjoint(_runs(parts))):
            return True
        return any(".".join(parts[:end]) in paths for end in range(2, len(parts) + 1))

    def _is_matched(self, plain: str, module: str) -> bool:
        if plain.startswith(self._beginnings) or (self._globs and self._globs.match(plain)):
            return True
        return any(one.search(module) for one in self._expressions)

    @cached_property
    def _names(self) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
        names = {plain_name(one) for one in self.patterns if "*" not in one and not one.startswith("re:")}
        dotted = {name for name in names if "." in name}
        inner = {name for name in dotted if not name.startswith("layers.")}
        return frozenset(dotted - inner), frozenset(names - dotted), frozenset(inner)

    @cached_property
    def _starred(self) -> tuple[str, ...]:
        return tuple(plain_name(one) for one in self.patterns if "*" in one and not one.startswith("re:"))

    @cached_property
    def _beginnings(self) -> tuple[str, ...]:
        """Of globs that only leave the end open, by far the most of all."""
        return tuple(one[:-1] for one in self._starred if _leaves_the_end_open(one))[:MOST_BEGINNINGS]

    @cached_property
    def _globs(self) -> re.Pattern[str] | None:
        globs = [one for one in dict.fromkeys(self._starred) if not _leaves_the_end_open(one)][:MOST_GLOBS]
        joined = "|".join(sorted(_translated(glob) for glob in globs))
        return re.compile(rf"(?:{joined})(?:\..*)?$") if joined else None

    @cached_property
    def _expressions(self) -> tuple[re.Pattern[str], ...]:
        written = [one.removeprefix("re:") for one in self.patterns if one.startswith("re:")][:MOST_EXPRESSIONS]
        return tuple(_affordable(written))


def _runs(parts: Sequence[str]) -> Iterator[str]:
    """Every run of at least two parts of a path, as it would be written."""
    for start in range(len(parts) - 1):
        for end in range(start + 2, len(parts) + 1):
            yield ".".join(parts[start:end])


def _leaves_the_end_open(glob: str) -> bool:
    return glob.find("*") == len(glob) - 1 and "?" not in glob and "[" not in glob


def _translated(glob: str) -> str:
    """A glob as an expression that can't take long, without the mark of its end."""
    whole = fnmatch.translate(glob)
    return whole[: whole.rindex(")") + 1]


def _affordable(expressions: Sequence[str]) -> Iterator[re.Pattern[str]]:
    """The expressions that together stay within `MOST_STEPS`."""
    left = MOST_STEPS
    for written in expressions:
        bare = _EDGE.sub("", written)  # a search runs on past both ends anyway, and paths are one line
        steps = STEPS_OF_REPETITION ** len(_REPETITION.findall(bare))
        compiled = _compiled(bare) if steps <= left else None
        if compiled:
            left -= steps
            yield compiled


def _compiled(expression: str) -> re.Pattern[str] | None:
    if len(expression) > LONGEST_EXPRESSION or _REPEATED_GROUP.search(expression):
        return None
    try:
        return re.compile(expression)
    except re.error:
        return None
