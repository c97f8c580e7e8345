"""What parts of a PromQL query give, and what they give together: series, sums and averages, and when nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

Kind = Literal["number", "sum", "average", "series"]
"""``series``: as the metric itself is."""
Groups = tuple[frozenset[str], ...]
Given = Literal["nothing", "constant", "value"]
"""What a query gives of those metrics that are there: nothing, the same whatever they say, or what they say."""

MAX_GROUPS = 256
"""Ways in which the parts of a query may stand in for each other, beyond which it is not read."""
_SUMS = frozenset({"sum", "count", "group"})
_COUNTS = frozenset({"count", "group"})
_CONSTANTS = frozenset({"vector", "time", "pi"})
_ABSENCE = frozenset({"absent", "absent_over_time"})
_UNTIL = frozenset({"==", "<", "<="})
"""Comparisons that a growing value fails."""
_BUCKET = frozenset({"le"})


class UnreadableQuery(ValueError):
    """A query that is no PromQL, or more of it than is read here."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a query gives."""

    kind: Kind
    by: frozenset[str] | None
    """Labels by which its series differ: none = it gives at most one; ``None`` = any labels."""
    needs: Groups
    """Metrics by groups: without any metric of a group the query gives nothing."""
    given: Given = "nothing"
    """What it gives of the metrics that are there."""
    always: bool = False
    """Whether it answers even where every metric is missing."""
    number: float | None = None
    """The value of what is one."""
    unnamed: bool = False
    """Whether it reads series by labels alone, so that their metrics are not known."""
    fixed: frozenset[str] = frozenset()
    """Labels that have one value in all its series."""

    @property
    def is_single(self) -> bool:
        """Whether it gives at most one series."""
        return self.by is not None and not self.by

    @property
    def metrics(self) -> frozenset[str]:
        """Every metric that it can't do without, or that stands in for one."""
        return frozenset().union(*self.needs)


def number(value: float | None) -> Shape:
    """A number, or what gives one whatever runs."""
    return Shape("number", frozenset(), (), "constant", always=True, number=value)


def selected(names: frozenset[str], fixed: frozenset[str], present: frozenset[str]) -> Shape:
    """The series of a selector: of one metric, of any of several, or of unknown ones."""
    given: Given = "value" if names & present else "nothing"
    return Shape("series", None, (names,) if names else (), given, unnamed=not names, fixed=fixed)


def aggregated(word: str, inner: Shape, by: frozenset[str] | None, without: frozenset[str] | None) -> Shape:
    """An aggregation: over all series, by some labels or without some; both ``None`` = several series of each."""
    left = _left(inner, by, without)
    given: Given = "constant" if word in _COUNTS and inner.given == "value" else inner.given
    found = replace(inner, by=left, given=given, number=None)
    if inner.is_single and word not in _COUNTS:
        return found
    return replace(found, kind="sum" if word in _SUMS else "average", fixed=frozenset())


def many(inner: Shape) -> Shape:
    """What picks or makes several series."""
    return replace(inner, by=None, number=None)


def _left(inner: Shape, by: frozenset[str] | None, without: frozenset[str] | None) -> frozenset[str] | None:
    """The labels by which series still differ."""
    if without is not None:
        return None if inner.by is None else inner.by - without
    wanted = (by or frozenset()) - inner.fixed
    return wanted if inner.by is None else wanted & inner.by


def called(word: str, arguments: Sequence[Shape]) -> Shape:
    """What a function gives of its arguments."""
    vectors = [item for item in arguments if item.kind != "number"]
    if not vectors or word in _CONSTANTS:
        return number(arguments[0].number if word == "vector" and arguments else None)
    first = vectors[0]
    by = first.by
    for item in vectors[1:]:
        by = _wider(by, item.by)
    if word in (*_ABSENCE, "scalar"):
        by = frozenset()
    elif word == "histogram_quantile" and by is not None:
        by = by - _BUCKET
    kind: Kind = "average" if word == "histogram_quantile" and first.kind == "sum" else first.kind
    found = () if word in _ABSENCE else (group for item in vectors for group in item.needs)
    needs = _limited(tuple(found))
    is_unnamed = any(item.unnamed for item in vectors)
    given: Given = _absence(first.given) if word in _ABSENCE else _together(*(item.given for item in vectors))
    always = word in _ABSENCE or all(item.always for item in vectors)
    return Shape(kind, by, needs, given, always, None, is_unnamed, first.fixed)


def joined(operator: str, left: Shape, right: Shape) -> Shape:
    """What two parts give together."""
    if operator == "or":
        return _either(left, right)
    is_unnamed = left.unnamed or right.unnamed
    if operator == "unless":
        given: Given = left.given if right.given == "nothing" else "nothing"
        return replace(left, given=given)
    needs = _limited(left.needs + right.needs)
    always = left.always and right.always
    if operator == "and":
        given = "nothing" if right.given == "nothing" else left.given
        return replace(left, needs=needs, given=given, always=always, unnamed=is_unnamed)
    value = _computed(operator, left.number, right.number)
    given = _given(operator, left, right)
    kind = _kind(operator, left.kind, right.kind)
    return Shape(kind, _wider(left.by, right.by), needs, given, always, value, is_unnamed, _fixed_in_both(left, right))


def _either(left: Shape, right: Shape) -> Shape:
    if len(left.needs) * len(right.needs) > MAX_GROUPS:
        raise UnreadableQuery("too many of its parts stand in for each other")
    return Shape(
        kind=right.kind if left.kind == "number" else left.kind,
        by=_wider(left.by, right.by),
        needs=tuple(dict.fromkeys(one | other for one, other in product(left.needs, right.needs))),
        given=left.given if left.given != "nothing" else right.given,
        always=left.always or right.always,
        unnamed=left.unnamed or right.unnamed,
        fixed=_fixed_in_both(left, right),
    )


def _limited(needs: Groups) -> Groups:
    found = tuple(dict.fromkeys(needs))
    if len(found) > MAX_GROUPS:
        raise UnreadableQuery(f"it needs more than {MAX_GROUPS} metrics at once")
    return found


def _wider(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return None if one is None or other is None else one | other


def _fixed_in_both(left: Shape, right: Shape) -> frozenset[str]:
    if "number" in (left.kind, right.kind):
        return left.fixed | right.fixed
    return left.fixed & right.fixed


def _together(*given: Given) -> Given:
    if "nothing" in given:
        return "nothing"
    return "value" if "value" in given else "constant"


def _absence(given: Given) -> Given:
    return "constant" if given == "nothing" else "nothing"


def _given(operator: str, left: Shape, right: Shape) -> Given:
    given = _together(left.given, right.given)
    is_nothing = operator in ("*", "/") and 0 in (left.number, right.number)
    falls = operator in _UNTIL and right.number is not None
    return "constant" if given == "value" and (is_nothing or falls) else given


def _computed(operator: str, left: float | None, right: float | None) -> float | None:
    if operator == "*" and 0 in (left, right):
        return 0.0
    if left is None or right is None:
        return None
    return {"+": left + right, "-": left - right, "*": left * right}.get(operator)


def _kind(operator: str, left: Kind, right: Kind) -> Kind:
    kinds = {left, right}
    if operator == "/" and kinds == {"sum"}:
        return "average"
    if kinds == {"sum", "average"} and (operator == "*" or (operator == "/" and left == "sum")):
        return "sum"
    for kind in ("series", "average", "sum"):
        if kind in kinds:
            return kind
    return "number"
