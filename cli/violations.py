"""Violations for people: what is wrong as rows, and what would be right said once for all that it mends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cli.table import paragraph, table
from fleet.violation import Violation

MANDATORY = "mandatory"
RESIDUAL = "advisory-residual"
"""The rule whose violations stand together: a version has many of one kind."""
TRIAGED = "triaged"
EACH_RECORD = "each record"
"""Stands in a shared remedy for the advisory that it is about."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A violation as a table shows it, from the rules at hand or from a server's answer."""

    rule: str
    severity: str
    where: str
    message: str
    remedy: str
    advisory: str | None

    @classmethod
    def of(cls, item: Violation | Mapping[str, object]) -> "Stated":
        """From either form; what a server leaves out is empty."""
        plain = item.model_dump(mode="json") if isinstance(item, Violation) else item
        words = (str(plain.get(key) or "") for key in ("rule", "severity", "pointer", "message", "remedy"))
        rule, severity, where, message, remedy = words
        advisory = plain.get("advisory")
        return cls(rule, severity, where or "/", message, remedy, str(advisory) if advisory else None)

    @property
    def residual_of(self) -> str | None:
        """What the message says before it names its record, where nobody has triaged the residual yet."""
        if self.rule != RESIDUAL or self.advisory is None or self.rating is None or TRIAGED in self.message:
            return None
        return self.message.partition(self.advisory)[0]

    @property
    def rating(self) -> str | None:
        """What stands in brackets behind the record."""
        rest = self.message.partition(f"{self.advisory} (")[2]
        return rest.partition(")")[0] or None

    @property
    def subject(self) -> str:
        """What a remedy is said for: the record, else the rule and its place."""
        return self.advisory or f"{self.rule} at {self.where}"

    @property
    def way(self) -> tuple[str, str]:
        """What is known of this one alone, and the way out that it may share with others."""
        head, _, tail = self.remedy.rpartition("; ")
        return head, tail.replace(self.advisory, EACH_RECORD) if self.advisory else tail


def show_violations(violations: Iterable[Violation | Mapping[str, object]], *, title: str) -> None:
    """The table of violations, what refuses first, then each remedy once."""
    stated = sorted((Stated.of(item) for item in violations), key=lambda item: item.severity != MANDATORY)
    table(rows_of(stated), title=title)
    if not stated:
        return
    paragraph("what would be right:")
    for way, heads in remedies(stated).items():
        paragraph(_of_one(way, heads), indent="- ")
        for head, subjects in heads.items():
            paragraph(f"{head}: {', '.join(subjects)}" if head else f"for {', '.join(subjects)}", indent="    ")


def rows_of(stated: Sequence[Stated]) -> list[dict[str, object]]:
    """A row for each violation, but one for all residuals of one kind: those that say the same of their records."""
    groups: dict[tuple[str, ...], list[Stated]] = {}
    for number, item in enumerate(stated):
        head = item.residual_of
        key = (item.rule, item.severity, item.where, head) if head else (str(number),)
        groups.setdefault(key, []).append(item)
    return [
        {"rule": items[0].rule, "severity": items[0].severity, "where": items[0].where, "message": _together(items)}
        for items in groups.values()
    ]


def _together(items: Sequence[Stated]) -> str:
    first = items[0]
    if len(items) == 1 or first.residual_of is None:
        return first.message
    records = ", ".join(f"{item.advisory} ({item.rating})" for item in items)
    return f"{first.residual_of}{len(items)} records: {records}"


def remedies(stated: Sequence[Stated]) -> dict[str, dict[str, list[str]]]:
    """Way out -> what is known of some -> those that it is said for, each in the order of the violations."""
    found: dict[str, dict[str, list[str]]] = {}
    for item in stated:
        head, way = item.way
        subjects = found.setdefault(way, {}).setdefault(head, [])
        if item.subject not in subjects:
            subjects.append(item.subject)
    return found


def _of_one(way: str, heads: Mapping[str, Sequence[str]]) -> str:
    """A way out that only one record has names it."""
    subjects = [subject for found in heads.values() for subject in found]
    return way.replace(EACH_RECORD, subjects[0]) if len(subjects) == 1 else way
