"""What a PromQL query gives: one series or several, a sum or an average, and the metrics that it can't do without.

Reads as much of the language as triggers are written in; what it can't read it says. Keywords and aggregations count in
any case, as Prometheus reads them; names of functions, metrics and labels don't.
"""

import re
from collections.abc import Callable

from fleet.cloud.promql_shapes import (
    Shape,
    UnreadableQuery,
    aggregated,
    called,
    joined,
    many,
    number,
    selected,
)

__all__ = ["MAX_DEPTH", "Shape", "UnreadableQuery", "shape_of"]

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_TOKEN = re.compile(
    r"""(?:(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    |(?P<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:ms|[smhdwy])?(?:\d+(?:ms|[smhdwy]))*)
    |(?P<word>[A-Za-z_:][\w:]*)|(?P<mark>=~|!~|==|!=|<=|>=|[-+*/%^()<>,=@{}\[\]]))""",
    re.VERBOSE,
)
_AGGREGATIONS = frozenset({"sum", "count", "group", "avg", "min", "max", "quantile", "stddev", "stdvar"})
_MANY = frozenset({"topk", "bottomk", "count_values", "limitk", "limit_ratio"})
_PRECEDENCE = {"or": 1, "and": 2, "unless": 2, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "atan2": 5, "^": 6}
_PRECEDENCE |= dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 3)
_UNARY = 6
_MATCHING = frozenset({"on", "ignoring", "group_left", "group_right"})
_MATCHERS = frozenset({"=", "=~", "!=", "!~"})
_QUOTES = "\"'`"
_NAME = "__name__"
_WORDS = re.compile(r"[\w:-]+(?:\|[\w:-]+)*")
MAX_DEPTH = 50


def shape_of(query: str, present: frozenset[str] = frozenset()) -> Shape:
    """What a query gives; ``present`` are the metrics that there are while no engine runs.

    Raises:
        UnreadableQuery: with the place where reading stopped.
    """
    reader = _Reader(_tokens(query), present)
    found = reader.expression()
    if reader.here is not None:
        raise UnreadableQuery(f"'{reader.here}' stands where the query should end")
    return found


def _tokens(query: str) -> list[str]:
    found = []
    place = _after_blanks(query, 0)
    while place < len(query):
        match = _TOKEN.match(query, place)
        if match is None:
            raise UnreadableQuery(f"'{query[place : place + 20].strip()}' is no part of PromQL")
        found.append(match[match.lastgroup or ""])
        place = _after_blanks(query, match.end())
    return found


def _after_blanks(query: str, place: int) -> int:
    """Where the next token begins: blanks and comments say nothing."""
    found = _BLANK.match(query, place)
    return found.end() if found else place


class _Reader:
    """Walks over the tokens once."""

    def __init__(self, tokens: list[str], present: frozenset[str]) -> None:
        self._tokens = tokens
        self._present = present
        self._place = 0
        self._depth = 0

    @property
    def here(self) -> str | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    @property
    def _keyword(self) -> str | None:
        """What stands here, if it is read as a keyword."""
        return self.here.lower() if self.here is not None else None

    def expression(self, least: int = 0) -> Shape:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableQuery(f"nested deeper than {MAX_DEPTH} levels")
        left = self._operand()
        while (operator := self._keyword) is not None and _PRECEDENCE.get(operator, -1) > least:
            self._take()
            self._matching()
            left = joined(operator, left, self.expression(_PRECEDENCE[operator] - (operator == "^")))
        self._depth -= 1
        return left

    def _take(self, wanted: str | None = None) -> str:
        found = self.here
        if found is None or wanted not in (None, found):
            raise UnreadableQuery(f"expected {wanted or 'more'}, found {found or 'the end'}")
        self._place += 1
        return found

    def _operand(self) -> Shape:
        token = self._take()
        if token in ("-", "+"):
            return self.expression(_UNARY)
        if token == "(":
            found = self.expression()
            self._take(")")
        elif token == "{":
            found = self._selector()
        elif token[0].isdigit() or token[0] in "\"'`.":
            found = number(_value_of(token))
        elif token[0].isalpha() or token[0] in "_:":
            found = self._named(token)
        else:
            raise UnreadableQuery(f"'{token}' stands where a value should")
        self._modifiers()
        return found

    def _named(self, word: str) -> Shape:
        if word.lower() in ("inf", "nan"):
            return number(None)
        if word.lower() in _AGGREGATIONS | _MANY:
            return self._aggregation(word.lower())
        if self.here == "(":
            return called(word, self._arguments())
        if self.here == "{":
            self._take()
            return self._selector(word)
        return selected(frozenset({word}), frozenset(), self._present)

    def _selector(self, word: str = "") -> Shape:
        """What stands between braces: metrics by name, and labels that have one value."""
        names, fixed = frozenset({word} if word else ()), set[str]()
        while self.here not in ("}", None):
            label = self._take()
            if label[0] in _QUOTES and self.here in (",", "}"):
                names = frozenset({_unquoted(label)})
            else:
                values = self._matched()
                label = _unquoted(label)
                if label == _NAME:
                    names = values
                elif len(values) == 1:
                    fixed.add(label)
            if self.here != "}":
                self._take(",")
        self._take("}")
        return selected(names, frozenset(fixed), self._present)

    def _matched(self) -> frozenset[str]:
        """The values that a label may have, where they are written out."""
        operator, text = self._take(), self._take()
        if operator not in _MATCHERS or text[0] not in _QUOTES:
            raise UnreadableQuery(f"'{operator}{text}' stands where a label's value should")
        value = _unquoted(text)
        if operator == "=":
            return frozenset({value})
        return frozenset(value.split("|")) if operator == "=~" and _WORDS.fullmatch(value) else frozenset()

    def _aggregation(self, word: str) -> Shape:
        grouping = self._grouping()
        arguments = self._arguments()
        grouping = grouping or self._grouping()
        if not arguments:
            raise UnreadableQuery(f"{word}() has nothing to aggregate")
        inner = arguments[-1]
        if word in _MANY:
            return many(inner)
        how, labels = grouping or ("by", frozenset())
        is_by = how == "by"
        return aggregated(word, inner, labels if is_by else None, None if is_by else labels)

    def _grouping(self) -> tuple[str, frozenset[str]] | None:
        if self._keyword not in ("by", "without"):
            return None
        return self._take().lower(), frozenset(map(_unquoted, self._labels())) - {","}

    def _labels(self) -> list[str]:
        self._take("(")
        found = []
        while self.here != ")":
            found.append(self._take())
        self._take(")")
        return found

    def _arguments(self) -> list[Shape]:
        self._take("(")
        found: list[Shape] = []
        while self.here != ")":
            found.append(self.expression())
            if self.here == ",":
                self._take()
        self._take(")")
        return found

    def _matching(self) -> None:
        if self._keyword == "bool":
            self._take()
        while self._keyword in _MATCHING:
            self._take()
            if self.here == "(":
                self._labels()

    def _modifiers(self) -> None:
        steps: dict[str, Callable[[], None]] = {"[": self._range, "offset": self._offset, "@": self._offset}
        while self._keyword in steps:
            word = self._take().lower()
            steps[word]()

    def _range(self) -> None:
        self._skip("[", "]")

    def _offset(self) -> None:
        if self.here == "-":
            self._take()
        self._take()
        if self.here == "(":
            self._labels()

    def _skip(self, opening: str, closing: str) -> None:
        """To the end of a selector or range, of which only the end matters."""
        while (token := self._take()) != closing:
            if token == opening:
                raise UnreadableQuery(f"'{opening}' inside '{opening}'")


def _unquoted(token: str) -> str:
    return token[1:-1] if token[0] in _QUOTES else token


def _value_of(token: str) -> float | None:
    """The number that a token is; a duration or a text is none."""
    try:
        return float(token)
    except ValueError:
        return None
