"""Lists of modules as quantised checkpoints write them: names, parts of names, globs, regular expressions."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

_ROOTS = re.compile(r"\n(?:(?:model|language_model|text_model|backbone|transformer|decoder|thinker)\.)+")
LONGEST_EXPRESSION = 500
MOST_EXPRESSIONS = 1_000
MOST_GLOBS = 500
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
    found = _ROOTS.match(f"\n{name}")
    return name[found.end() - 1 :] if found else name


def _plain_names(names: Sequence[str]) -> Sequence[str]:
    """`plain_name` of each, all at once: a list may be five megabytes long."""
    joined = "\n" + "\n".join(names)
    if joined.count("\n") != len(names):
        return [plain_name(name) for name in names]
    return _ROOTS.sub("\n", joined)[1:].split("\n")


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Patterns by how they are compared, in plain names."""

    names: frozenset[str]
    has_inner: bool
    """Whether a name of several parts may stand anywhere in a path, not only at its beginning."""
    beginnings: frozenset[str]
    """Of globs that only leave the end open, by far the most of all."""
    globs: tuple[str, ...]
    expressions: tuple[str, ...]

    @classmethod
    def of(cls, patterns: Iterable[str]) -> "_Sorted":
        names, starred, expressions = [], [], []
        for one in patterns:
            if one.startswith("re:"):
                expressions.append(one[3:])
            elif "*" in one:
                starred.append(one)
            else:
                names.append(one)
        plain = _plain_names(names)
        has_inner = any("." in name and not name.startswith("layers.") for name in plain)
        beginnings, globs = set(), []
        for one in _plain_names(starred):
            beginning = one[:-1]
            if one[-1:] == "*" and not ("*" in beginning or "?" in beginning or "[" in beginning):
                beginnings.add(beginning)
            else:
                globs.append(one)
        once = (dict.fromkeys(globs), dict.fromkeys(expressions))
        return cls(frozenset(plain), has_inner, frozenset(beginnings), *map(tuple, once))


@dataclass(frozen=True)
class Modules:
    """A list of module patterns.

    A name covers everything under it, and a part of a path (``lm_head``, ``mlp.gate``) covers it wherever it stands.
    """

    patterns: tuple[str, ...] = ()

    @classmethod
    def of(cls, patterns: Iterable[str]) -> "Modules":
        """The list in its order."""
        return cls(tuple(patterns))

    def names(self, module: str) -> bool:
        """Whether a module is on the list."""
        if not self.patterns:
            return False
        plain = plain_name(module)
        return self._is_named(plain) or self._is_matched(plain, module)

    def _is_named(self, plain: str) -> bool:
        """By one part of the path, by its beginning, or by parts in its middle that do not begin with ``layers``."""
        names, parts = self._sorted.names, plain.split(".")
        if not names.isdisjoint(parts):
            return True
        if not names.isdisjoint(_runs(parts, 0)):
            return True
        starts = range(1, len(parts) - 1) if self._sorted.has_inner else ()
        return any(parts[start] != "layers" and not names.isdisjoint(_runs(parts, start)) for start in starts)

    def _is_matched(self, plain: str, module: str) -> bool:
        for length in self._lengths:
            if length > len(plain):
                break
            if plain[:length] in self._sorted.beginnings:
                return True
        if self._globs and self._globs.match(plain):
            return True
        return any(one.search(module) for one in self._expressions)

    @cached_property
    def _sorted(self) -> _Sorted:
        return _Sorted.of(self.patterns)

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        """Of the beginnings, ascending."""
        return tuple(sorted(set(map(len, self._sorted.beginnings))))

    @cached_property
    def _globs(self) -> re.Pattern[str] | None:
        joined = "|".join(sorted(_translated(glob) for glob in self._sorted.globs[:MOST_GLOBS]))
        return re.compile(rf"(?:{joined})(?:\..*)?$") if joined else None

    @cached_property
    def _expressions(self) -> Mapping[re.Pattern[str], int]:
        """What is searched for, with the estimated steps of each."""
        return dict(_affordable(self._sorted.expressions[:MOST_EXPRESSIONS]))

    @property
    def steps(self) -> int:
        """Estimated steps that its expressions take on one module, at most `MOST_STEPS`."""
        return sum(self._expressions.values())


def _runs(parts: Sequence[str], start: int) -> Iterator[str]:
    """Every run of at least two parts of a path that begins at this one, as it would be written."""
    for end in range(start + 2, len(parts) + 1):
        yield ".".join(parts[start:end])


def _translated(glob: str) -> str:
    """A glob as an expression that can't take long, without the mark of its end."""
    whole = fnmatch.translate(glob)
    return whole[: whole.rindex(")") + 1]


def _affordable(expressions: Sequence[str]) -> Iterator[tuple[re.Pattern[str], int]]:
    """The expressions that together stay within `MOST_STEPS`, with the steps of each."""
    left = MOST_STEPS
    for written in expressions:
        bare = _EDGE.sub("", written)  # a search runs on past both ends anyway, and paths are one line
        steps = STEPS_OF_REPETITION ** len(_REPETITION.findall(bare))
        compiled = _compiled(bare) if steps <= left else None
        if compiled:
            left -= steps
            yield compiled, steps


def _compiled(expression: str) -> re.Pattern[str] | None:
    if len(expression) > LONGEST_EXPRESSION or _REPEATED_GROUP.search(expression):
        return None
    try:
        return re.compile(expression)
    except re.error:
        return None
