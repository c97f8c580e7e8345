"""Reads patterns that a tenant writes: RE2's syntax less everything that can match text without end."""

import re

from fleet.pattern_tree import Chain, Chars, Choice, Edge, Node, Repeat, least_width, width

MAX_WIDTH = 512
"""Characters that a match may have, which is what a stream is held back for."""
MAX_SOURCE = 2_000
MAX_DEPTH = 20
MAX_COUNT = 512

_COUNT = re.compile(r"\{(\d{1,6})(,?)(\d{0,6})\}")
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:[dDwWsStnrfv]|[pP](?:\{\^?\w+\}|[A-Z])|x(?:[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{1,6}\})|[^\w\s])")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|[ims]{0,3}:))?")
_ENDS = {"^": "begins", "$": "ends", "\\A": "begins", "\\z": "ends", "\\Z": "ends"}


class PatternRefused(ValueError):
    """A pattern can't be used on a stream; the message says why and what would be right."""


def parse_pattern(text: str) -> Node:
    """The pattern as a tree; refused where it can match nothing, without end, or more than ``MAX_WIDTH``."""
    if len(text) > MAX_SOURCE:
        raise PatternRefused(f"it has {len(text)} characters; at most {MAX_SOURCE} are read")
    node = _Parser(text).whole()
    if least_width(node) == 0:
        raise PatternRefused("it matches the empty text; at least one character must be required")
    if (widest := width(node)) > MAX_WIDTH:
        raise PatternRefused(
            f"it can match {widest} characters, and a stream would be held back as long; "
            f"lower the counts until it is at most {MAX_WIDTH}"
        )
    return node


def literal(text: str) -> Node:
    """A word or phrase as a tree; white space between its words may be one to three of spaces, tabs, breaks, dashes."""
    words = text.split()
    gap = Repeat(Chars(r"[ \t\n-]"), 1, 3)
    parts: list[Node] = []
    for word in words:
        parts += [gap] if parts else []
        parts += [Chars(_quoted(char)) for char in word]
    return Chain(tuple(parts))


def _quoted(char: str) -> str:
    return f"\\x{{{ord(char):x}}}"


class _Parser:
    __slots__ = ("_at", "_depth", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise self._refused("`)` closes nothing; write `\\)` for the character")
        return node

    def _choice(self) -> Node:
        options = [self._chain()]
        while self._text.startswith("|", self._at):
            self._at += 1
            options.append(self._chain())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _chain(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            parts.append(self._counted(self._atom()))
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _counted(self, node: Node) -> Node:
        char = self._text[self._at : self._at + 1]
        if char in ("*", "+"):
            raise self._refused(f"`{char}` matches text without end; write a bound, like {{1,64}}")
        if char == "?":
            least, most, self._at = 0, 1, self._at + 1
        elif count := _COUNT.match(self._text, self._at):
            least, most = self._bounds(count)
            self._at = count.end()
        else:
            return node
        if self._text.startswith("?", self._at):  # a lazy count: the longest match is taken all the same
            self._at += 1
        if self._text[self._at : self._at + 1] in ("*", "+", "?") or _COUNT.match(self._text, self._at):
            raise self._refused("a count follows a count; put a group around the first")
        return Repeat(node, least, most)

    def _bounds(self, count: re.Match[str]) -> tuple[int, int]:
        least = int(count[1])
        if count[2] and not count[3]:
            raise self._refused(f"`{count[0]}` matches text without end; write a bound, like {{{least},{least + 64}}}")
        most = int(count[3]) if count[3] else least
        if not least <= most <= MAX_COUNT:
            raise self._refused(f"`{count[0]}` is no count; it must rise and be at most {MAX_COUNT}")
        return least, most

    def _atom(self) -> Node:
        char = self._text[self._at]
        if char == "(":
            return self._group()
        if char == "[":
            return Chars(self._read(_CLASS, "a class is not closed; write `\\[` for the character"))
        if char == "\\":
            return self._escape()
        if char in _ENDS:
            raise self._refused(f"`{char}` asks where a text {_ENDS[char]}, which a stream does not know; write `\\b`")
        if char in "*+?":
            raise self._refused(f"`{char}` has nothing to repeat; write `\\{char}` for the character")
        self._at += 1
        return Chars("." if char == "." else _quoted(char))

    def _group(self) -> Node:
        opening = _GROUP.match(self._text, self._at)
        if opening is None or self._text.startswith("?", opening.end()):
            raise self._refused("only (?:...), (...), (?P<name>...) and (?i:...) are known")
        if "i" in opening[0].partition("<")[0] or "m" in opening[0].partition("<")[0]:
            raise self._refused("flags inside a pattern are not read; ask for `ignore_case` beside it")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._refused(f"its groups are nested deeper than {MAX_DEPTH}")
        self._at = opening.end()
        node = self._choice()
        if not self._text.startswith(")", self._at):
            raise self._refused("a group is not closed; write `\\(` for the character")
        self._at += 1
        self._depth -= 1
        return node

    def _escape(self) -> Node:
        pair = self._text[self._at : self._at + 2]
        if pair in ("\\b", "\\B"):
            self._at += 2
            return Edge(pair)
        if pair in _ENDS:
            raise self._refused(f"`{pair}` asks where a text {_ENDS[pair]}, which a stream does not know; write `\\b`")
        return Chars(self._read(_ESCAPE, f"`{pair}` is not known; classes are \\d \\w \\s \\p{{Name}}, edges \\b"))

    def _read(self, pattern: re.Pattern[str], complaint: str) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self._refused(complaint)
        self._at = found.end()
        return found[0]

    def _refused(self, why: str) -> PatternRefused:
        return PatternRefused(f"at character {self._at + 1}: {why}")
