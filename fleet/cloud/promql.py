"""What a PromQL query gives: one series or several, a sum or an average, and the metrics that it can't do without.

Reads as much of the language as triggers are written in; what it can't read it says.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

Kind = Literal["number", "sum", "average", "series"]
"""``series``: as the metric itself is."""
Groups = tuple[frozenset[str], ...]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)
    |(?P<number>0x[0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:ms|[smhdwy])?(?:\d+(?:ms|[smhdwy]))*)
    |(?P<word>[A-Za-z_:][\w:]*)|(?P<mark>=~|!~|==|!=|<=|>=|[-+*/%^()<>,=@{}\[\]]))""",
    re.VERBOSE,
)
_SUMS = frozenset({"sum", "count", "group"})
_AVERAGES = frozenset({"avg", "min", "max", "quantile", "stddev", "stdvar"})
_MANY = frozenset({"topk", "bottomk", "count_values", "limitk", "limit_ratio"})
_CONSTANTS = frozenset({"vector", "time", "pi"})
_PRECEDENCE = {"or": 1, "and": 2, "unless": 2, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5, "atan2": 5, "^": 6}
_PRECEDENCE |= dict.fromkeys(("==", "!=", "<", ">", "<=", ">="), 3)
_UNARY = 6
_MATCHING = frozenset({"on", "ignoring", "group_left", "group_right"})
MAX_DEPTH = 50


class UnreadableQuery(ValueError):
    """A query that is no PromQL, or more of it than is read here."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a query gives."""

    kind: Kind
    is_single: bool
    """Whether it gives at most one series."""
    needs: Groups
    """Metrics by groups: without any metric of a group the query gives nothing."""

    @property
    def metrics(self) -> frozenset[str]:
        """Every metric that it can't do without, or that stands in for one."""
        return frozenset().union(*self.needs)


_NUMBER = Shape("number", True, ())


def shape_of(query: str) -> Shape:
    """What a query gives.

    Raises:
        UnreadableQuery: with the place where reading stopped.
    """
    reader = _Reader(_tokens(query))
    found = reader.expression()
    if reader.here is not None:
        raise UnreadableQuery(f"'{reader.here}' stands where the query should end")
    return found


def _tokens(query: str) -> list[str]:
    found, place = [], 0
    query = query.rstrip()
    while place < len(query):
        match = _TOKEN.match(query, place)
        if match is None:
            raise UnreadableQuery(f"'{query[place : place + 20].strip()}' is no part of PromQL")
        found.append(match[match.lastgroup or ""])
        place = match.end()
    return found


class _Reader:
    """Walks over the tokens once."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0
        self._depth = 0

    @property
    def here(self) -> str | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def expression(self, least: int = 0) -> Shape:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableQuery(f"nested deeper than {MAX_DEPTH} levels")
        left = self._operand()
        while (operator := self.here) is not None and _PRECEDENCE.get(operator, -1) > least:
            self._take()
            self._matching()
            left = _joined(operator, left, self.expression(_PRECEDENCE[operator] - (operator == "^")))
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
            self._skip("{", "}")
            found = Shape("series", False, ())
        elif token[0].isdigit() or token[0] in "\"'`.":
            found = _NUMBER
        elif token[0].isalpha() or token[0] in "_:":
            found = self._named(token)
        else:
            raise UnreadableQuery(f"'{token}' stands where a value should")
        self._modifiers()
        return found

    def _named(self, word: str) -> Shape:
        if word.lower() in ("inf", "nan"):
            return _NUMBER
        if word in _SUMS | _AVERAGES | _MANY:
            return self._aggregation(word)
        if self.here == "(":
            return _called(word, self._arguments())
        if self.here == "{":
            self._take()
            self._skip("{", "}")
        return Shape("series", False, (frozenset({word}),))

    def _aggregation(self, word: str) -> Shape:
        is_grouped = self._grouping()
        arguments = self._arguments()
        is_grouped |= self._grouping()
        if not arguments:
            raise UnreadableQuery(f"{word}() has nothing to aggregate")
        inner = arguments[-1]
        if word in _MANY or is_grouped:
            return replace(inner, is_single=False)
        if inner.is_single and word not in ("count", "group"):
            return inner
        return Shape("sum" if word in _SUMS else "average", True, inner.needs)

    def _grouping(self) -> bool:
        if self.here not in ("by", "without"):
            return False
        is_without = self._take() == "without"
        return bool(self._labels()) or is_without

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
        if self.here == "bool":
            self._take()
        while self.here in _MATCHING:
            self._take()
            if self.here == "(":
                self._labels()

    def _modifiers(self) -> None:
        steps: dict[str, Callable[[], None]] = {"[": self._range, "offset": self._offset, "@": self._offset}
        while self.here in steps:
            word = self._take()
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


def _called(word: str, arguments: list[Shape]) -> Shape:
    vectors = [item for item in arguments if item.kind != "number"]
    if word in _CONSTANTS or not vectors:
        return _NUMBER
    is_single = word in ("scalar", "absent", "absent_over_time") or all(item.is_single for item in vectors)
    needs = tuple(group for item in vectors for group in item.needs)
    return Shape(vectors[0].kind, is_single, needs)


def _joined(operator: str, left: Shape, right: Shape) -> Shape:
    if operator == "or":
        kind = right.kind if left.kind == "number" else left.kind
        needs = tuple(one | other for one, other in product(left.needs, right.needs))
        return Shape(kind, left.is_single and right.is_single, needs)
    if operator in ("and", "unless"):
        return left
    is_single = left.is_single and right.is_single
    return Shape(_kind(operator, left.kind, right.kind), is_single, left.needs + right.needs)


def _kind(operator: str, left: Kind, right: Kind) -> Kind:
    if operator == "/" and left == right == "sum":
        return "average"
    for kind in ("series", "average", "sum"):
        if kind in (left, right):
            return kind
    return "number"
