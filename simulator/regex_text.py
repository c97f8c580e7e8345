"""Makes a text that a regular expression accepts: literals, classes, groups, alternatives, counts."""

import random
import re
import string

_CLASSES = {"d": string.digits, "w": string.ascii_lowercase + string.digits, "s": " "}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_MANY = 4
_MOST = 4_096
_MOST_STEPS = 20_000
"""Counts within counts multiply: without a bound one request would hold the engine for ever."""


class RegexError(ValueError):
    """The expression is wrong or uses something that the simulator does not make text for."""


def text_for_regex(pattern: str, source: random.Random) -> str:
    """Return one text that matches the whole pattern; a pattern of literals has exactly one."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise RegexError(f"Invalid regex: {error}") from error
    body = pattern.removeprefix("^")
    writer = _Writer(body if body.endswith("\\$") else body.removesuffix("$"), source)
    try:
        text = writer.alternatives()
    except (IndexError, RecursionError):
        text = None
    if text is None or not writer.is_done or not compiled.fullmatch(text):
        raise RegexError(f"the simulated engine makes no text for the regex {pattern!r}; use literals, classes, counts")
    return text


class _Writer:
    """Walks once over the pattern and writes text; what is not chosen is walked as well."""

    def __init__(self, pattern: str, source: random.Random) -> None:
        self._pattern = pattern
        self._source = source
        self._at = 0
        self._steps = 0

    @property
    def is_done(self) -> bool:
        """Tell whether the whole pattern was used."""
        return self._at == len(self._pattern)

    def alternatives(self) -> str:
        """Write one of the branches up to the end of the group."""
        branches = [self._branch()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._branch())
        return self._source.choice(branches)

    def _branch(self) -> str:
        text = ""
        while not self.is_done and self._peek() not in "|)":
            start = self._at
            once = self._atom()
            stop = self._at
            count = self._count()
            after = self._at
            text += once if count else ""
            for _ in range(count - 1):
                self._at = start
                text += self._atom()
                self._at = stop
            self._at = after
        return text

    def _atom(self) -> str:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise RegexError(f"the regex asks for more than {_MOST_STEPS} pieces of text; give smaller counts")
        character = self._next()
        if character == "(":
            if self._pattern.startswith("?:", self._at):
                self._at += 2
            text = self.alternatives()
            self._at += 1
            return text
        if character == "[":
            return self._source.choice(self._members())
        if character == "\\":
            return self._source.choice(self._escaped(self._next()))
        return self._source.choice(string.ascii_lowercase) if character == "." else character

    def _members(self) -> str:
        members = ""
        while self._peek() != "]":
            character = self._next()
            if character == "\\":
                members += self._escaped(self._next())
            elif self._peek() == "-" and not self._pattern.startswith("-]", self._at):
                self._at += 1
                members += "".join(map(chr, range(ord(character), ord(self._next()) + 1)))
            else:
                members += character
        self._at += 1
        if members.startswith("^"):
            members = "".join(sorted(set(string.ascii_letters + string.digits) - set(members)))
        return members

    @staticmethod
    def _escaped(character: str) -> str:
        return _CLASSES.get(character) or _ESCAPES.get(character) or character

    def _count(self) -> int:
        mark = self._peek()
        if mark in "*+?" and mark:
            self._at += 1
            least, most = {"*": (0, _MANY), "+": (1, _MANY), "?": (0, 1)}[mark]
            return self._source.randint(least, most)
        found = _COUNT.match(self._pattern, self._at)
        if not found:
            return 1
        self._at = found.end()
        least = min(int(found[1]), _MOST)
        most = min(int(found[3]), _MOST) if found[3] else least + (_MANY if found[2] else 0)
        return self._source.randint(least, most)

    def _peek(self) -> str:
        return self._pattern[self._at] if self._at < len(self._pattern) else ""

    def _next(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1]
